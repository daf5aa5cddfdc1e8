#include "task/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace detent {
namespace {

TEST(TaskId, TextReadsBackAsTheSameId) {
  for (const std::uint64_t value :
       {std::uint64_t{1}, std::uint64_t{255}, std::uint64_t{1} << 32, TaskId::kEnd - 1}) {
    EXPECT_EQ(parse_task_id(to_string(TaskId{value})), TaskId{value});
  }
}

TEST(TaskId, OtherTextsAreRefused) {
  for (const std::string_view text :
       {"", "0", "01", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "a", "1a", "1\n",
        "9007199254740992", "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_EQ(parse_task_id(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(parse_task_id(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(parse_task_id("9007199254740991"), TaskId{9'007'199'254'740'991});
}

TEST(TaskId, NextKeepsTheShardBitsAndRises) {
  const TaskId id{(std::uint64_t{41} << TaskId::kShardBits) + 7};
  EXPECT_EQ(id.next(), (TaskId{(std::uint64_t{42} << TaskId::kShardBits) + 7}));
  EXPECT_LT(id, id.next());
}

TEST(History, RemembersTheLastAttemptsOldestFirst) {
  Task task;
  for (std::size_t i = 0; i < 2 * kMaxHistory; ++i) {
    add_attempt(task, {.worker = "w", .error = std::to_string(i)});
    ASSERT_EQ(task.history.size(), std::min(i + 1, kMaxHistory));
    for (std::size_t k = 0; k < task.history.size(); ++k) {
      ASSERT_EQ(task.history[k].error, std::to_string(i + 1 - task.history.size() + k));
    }
  }
}

TEST(History, TheLastErrorIsTheErrorOfTheLastAttempt) {
  Task task;
  EXPECT_EQ(last_error(task), "");
  add_attempt(task, {.error = "first"});
  add_attempt(task, {.error = "second"});
  EXPECT_EQ(last_error(task), "second");
  add_attempt(task, {});
  EXPECT_EQ(last_error(task), "");
}

TEST(QueueName, OnlyTheListedBytesAreAllowed) {
  const std::string allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;:.$_()";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = std::string("q") + static_cast<char>(byte);
    EXPECT_EQ(is_queue_name(name), allowed.find(static_cast<char>(byte)) != std::string::npos)
        << "byte " << byte;
  }
}

TEST(QueueName, HasOneToTwoHundredBytes) {
  EXPECT_FALSE(is_queue_name(""));
  EXPECT_TRUE(is_queue_name("q"));
  EXPECT_TRUE(is_queue_name(std::string(200, 'q')));
  EXPECT_FALSE(is_queue_name(std::string(201, 'q')));
}

TEST(QueueName, DoesNotStartWithAHyphen) {
  EXPECT_FALSE(is_queue_name("-q"));
  EXPECT_TRUE(is_queue_name("q-"));
}

}  // namespace
}  // namespace detent
