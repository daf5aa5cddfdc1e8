// Every command on a job in each of its states, on a single server.
#include "server/testing/beanstalk_states_fixture.h"

namespace detent::server {
namespace {

TEST_F(BeanstalkTest, EveryCommandAnswersAsTheTableSays) {
  const auto connect_one = [this] { return connect(); };
  expect_replies_of_the_table(connect_one, connect_one);
}

}  // namespace
}  // namespace detent::server
