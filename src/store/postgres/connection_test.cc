// Tests which statements a connection prepares, with a real PostgreSQL and a real pgbouncer.
#include "store/postgres/connection.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fnv.h"
#include "store/postgres/testing/private_cluster.h"

namespace detent {
namespace {

class PostgresConnection : public testing::Test {
 protected:
  /// "select VALUE + NUMBER". NUMBER is part of the text, so each number makes another statement.
  static Statement sum(std::int64_t value, int number = 0) {
    Statement statement;
    const std::string parameter = statement.add_bigint(value);
    statement.set_sql("select " + parameter + " + " + std::to_string(number));
    statement.keep_plan();
    return statement;
  }
  static Statement failing() {
    Statement statement("select 1 / (select 0)::bigint");
    statement.keep_plan();
    return statement;
  }
  static std::int64_t answer_of(Connection& connection, Statement statement) {
    const Result<Rows> rows = connection.run_one(std::move(statement));
    EXPECT_TRUE(rows) << rows.error().message;
    return rows ? rows->bigint(0, 0) : -1;
  }
  /// The number of prepared statements of the session, as the database counts them.
  static std::int64_t prepared(Connection& connection) {
    return answer_of(connection, Statement("select count(*) from pg_prepared_statements"));
  }

  /// The name under which the session has prepared sum() for `number`.
  static std::string name_of_sum(Connection& connection, int number) {
    const Result<Rows> rows = connection.run_one(
        Statement("select name from pg_prepared_statements where statement like '% + " +
                  std::to_string(number) + "'"));
    EXPECT_TRUE(rows) << rows.error().message;
    return rows && rows->size() == 1 ? std::string(rows->bytes(0, 0)) : "";
  }
  static void expect_unavailable(const Result<Rows>& rows) {
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, ErrorCode::unavailable) << rows.error().message;
  }

  std::string url_ = shared_cluster().new_database();
};

TEST_F(PostgresConnection, AStatementWithKeepPlanIsPreparedOnce) {
  Connection connection({.url = url_});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(answer_of(connection, sum(i, 7)), i + 7);
  EXPECT_EQ(connection.kept_plans(), 2u) << "the statement and the settings";
}

TEST_F(PostgresConnection, AStatementWithoutKeepPlanIsNotPrepared) {
  Connection connection({.url = url_});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer_of(connection, Statement("select 1::bigint")), 1);
    EXPECT_EQ(answer_of(connection, Statement("select 2::bigint")), 2);
  }
  EXPECT_EQ(connection.kept_plans(), 1u) << "the settings";
  EXPECT_EQ(prepared(connection), 1);
}

TEST_F(PostgresConnection, NoStatementIsPreparedBehindAPooler) {
  const PrivateBouncer bouncer(shared_cluster());
  Connection connection({.url = bouncer.through(url_)});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_EQ(connection.kept_plans(), 0u);
  EXPECT_EQ(prepared(connection), 0);
}

TEST_F(PostgresConnection, ARunReturnsTheRowsOfPreparedAndUnpreparedStatements) {
  Connection connection({.url = url_});
  for (std::int64_t i = 0; i < 4; ++i) {
    std::vector<Statement> statements;
    statements.push_back(sum(i, 1));
    statements.emplace_back("select 5::bigint");
    statements.push_back(sum(i, 2));
    const Result<std::vector<Rows>> rows = connection.run(statements);
    ASSERT_TRUE(rows);
    ASSERT_EQ(rows->size(), 3u);
    EXPECT_EQ((*rows)[0].bigint(0, 0), i + 1);
    EXPECT_EQ((*rows)[1].bigint(0, 0), 5);
    EXPECT_EQ((*rows)[2].bigint(0, 0), i + 2);
  }
}

TEST_F(PostgresConnection, AFailedStatementIsAnErrorAndLaterRunsSucceed) {
  Connection connection({.url = url_});
  EXPECT_EQ(answer_of(connection, sum(1)), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(connection.run({sum(2, 3), failing(), sum(4, 5)}));
    EXPECT_EQ(answer_of(connection, sum(2, 3)), 5);
    EXPECT_EQ(answer_of(connection, sum(4, 5)), 9);
  }
}

TEST_F(PostgresConnection, PlansEndWithTheirSession) {
  Connection connection({.url = url_});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_GT(connection.kept_plans(), 0u);
  execute(url_,
          "select pg_terminate_backend(pid) from pg_stat_activity where pid <> "
          "pg_backend_pid() and datname = current_database()");
  EXPECT_FALSE(connection.run_one(sum(1)));
  EXPECT_EQ(connection.kept_plans(), 0u);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_GT(connection.kept_plans(), 0u);
}

TEST_F(PostgresConnection, AMissingPreparedStatementFailsOnceAndThenNoneIsPrepared) {
  Connection connection({.url = url_});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_EQ(connection.kept_plans(), 2u);
  ASSERT_TRUE(connection.run_one(Statement("deallocate all")));
  expect_unavailable(connection.run_one(sum(1)));
  EXPECT_FALSE(connection.is_open());
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_EQ(connection.kept_plans(), 0u) << "the peer counts as a pooler";
  connection.close();
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i)), i);
  EXPECT_EQ(connection.kept_plans(), 0u) << "a new connection has the same peer";
}

TEST_F(PostgresConnection, AnExistingPreparedStatementFailsOnceAndThenNoneIsPrepared) {
  Connection connection({.url = url_});
  EXPECT_EQ(answer_of(connection, sum(1)), 1);
  const std::string name = "detent_" + std::to_string(fnv1a(sum(1, 5).sql()));
  ASSERT_TRUE(connection.run_one(Statement("prepare " + name + " as select 4::bigint")));
  expect_unavailable(connection.run_one(sum(1, 5)));
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, sum(i, 5)), i + 5);
  EXPECT_EQ(connection.kept_plans(), 0u);
}

TEST_F(PostgresConnection, APlanWhoseTableHasChangedFailsOnceAndIsMadeAgain) {
  execute(url_, "create table pair (a bigint); insert into pair values (3)");
  Statement all("select * from pair");
  all.keep_plan();
  Connection connection({.url = url_});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, all), 3);
  execute(url_, "alter table pair add column b bigint");
  expect_unavailable(connection.run_one(all));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(connection, all), 3);
  EXPECT_EQ(connection.kept_plans(), 2u)
      << "the peer still counts as PostgreSQL, so plans are kept again";
}

TEST_F(PostgresConnection, AStatementHasTheSameNameInEverySession) {
  Connection one({.url = url_});
  Connection other({.url = url_});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer_of(one, sum(1, i)), i + 1);
  for (int i = 2; i >= 0; --i) EXPECT_EQ(answer_of(other, sum(1, i)), i + 1);
  const std::string name = name_of_sum(one, 1);
  EXPECT_NE(name, "");
  EXPECT_EQ(name_of_sum(other, 1), name);
}

TEST_F(PostgresConnection, AConnectionKeepsABoundedNumberOfPlans) {
  Connection connection({.url = url_});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(answer_of(connection, sum(1, i)), i + 1);
  EXPECT_EQ(connection.kept_plans(), 64u);
  EXPECT_EQ(prepared(connection), 64);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(answer_of(connection, sum(1, i)), i + 1);
}

}  // namespace
}  // namespace detent
