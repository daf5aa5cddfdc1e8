#include "store/postgres/postgres_error.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

TEST(PostgresError, AMessageOfTheClientLibraryIsOneLineWithoutHints) {
  EXPECT_EQ(postgres_error("",
                           "server closed the connection unexpectedly\n"
                           "\tThis probably means the server terminated abnormally\n"
                           "\tbefore or while processing the request.\n")
                .message,
            "server closed the connection unexpectedly");
  EXPECT_EQ(
      postgres_error("",
                     "connection to server at \"db1\", port 5432 failed: Connection refused\n"
                     "\tIs the server running on that host and accepting TCP/IP connections?\n"
                     "connection to server at \"db2\", port 5432 failed: session is read-only\n")
          .message,
      "connection to server at \"db1\", port 5432 failed: Connection refused; connection to server "
      "at \"db2\", port 5432 failed: session is read-only");
}

TEST(PostgresError, ALineThatIsThereTwiceIsSaidOnce) {
  EXPECT_EQ(postgres_error("", "SSL error: broken\nSSL error: broken\n").message,
            "SSL error: broken");
}

TEST(PostgresError, AMessageOfTheServerKeepsItsCode) {
  EXPECT_EQ(
      postgres_error("57P01", "terminating connection\ndue to\tadministrator command").message,
      "terminating connection; due to administrator command (57P01)");
  EXPECT_EQ(postgres_error("", "\n").message, "PostgreSQL gave no reason");
}

}  // namespace
}  // namespace detent
