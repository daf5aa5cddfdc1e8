#include "server/http/etag.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace detent::server {
namespace {

TEST(Etag, DiffersWithEveryShownField) {
  const TaskSnapshot first{.task = {.id = {256},
                                    .queue = "q",
                                    .payload = {},
                                    .rules = {},
                                    .due_at = WallTime{std::chrono::milliseconds{5}}}};
  std::vector<TaskSnapshot> views(7, first);
  views[1].state = TaskState::ready;
  views[2].task.due_at += std::chrono::milliseconds{1};
  views[3].task.rules.priority = 7;
  views[4].task.payload.data = "1";
  views[5].task.attempts = 1;
  views[6].task.rules.max_attempts = 3;
  std::set<std::string> tags;
  for (const TaskSnapshot& view : views) tags.insert(etag_of(view));
  EXPECT_EQ(tags.size(), views.size());
  EXPECT_EQ(etag_of(first), etag_of(TaskSnapshot(first)));
}

TEST(Etag, IfMatchIsAListOfStrongTagsOrAStar) {
  const std::string etag = R"("a1")";
  for (const char* header : {R"("a1")", R"("b2", "a1")", R"(  "a1"  ,"b2")", "*"}) {
    EXPECT_TRUE(allows(header, etag)) << header;
  }
  for (const char* header : {R"("a2")", R"(W/"a1")", "a1", ",", " ", R"("a1)", R"("b2","c3")"}) {
    EXPECT_FALSE(allows(header, etag)) << header;
  }
}

}  // namespace
}  // namespace detent::server
