// Every command on a job in every state it can be in, on a server alone.
#include "server/beanstalk_states_fixture.h"

namespace detent::server {
namespace {

TEST_F(BeanstalkTest, EveryCommandAnswersAsTheTableSays) {
  const auto connect_one = [this] { return connect(); };
  expect_replies_of_the_table(connect_one, connect_one);
}

}  // namespace
}  // namespace detent::server
