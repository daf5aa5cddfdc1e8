#include "task/task_change.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace detent {
namespace {

TEST(TaskChange, EveryEventHasTheNameOfTheInterface) {
  constexpr std::pair<TaskEvent, std::string_view> kNames[] = {
      {TaskEvent::scheduled, "scheduled"}, {TaskEvent::ready, "ready"},
      {TaskEvent::leased, "leased"},       {TaskEvent::extended, "extended"},
      {TaskEvent::released, "released"},   {TaskEvent::completed, "completed"},
      {TaskEvent::failed, "failed"},       {TaskEvent::expired, "expired"},
      {TaskEvent::dead, "dead"},           {TaskEvent::moved, "moved"},
      {TaskEvent::edited, "edited"},       {TaskEvent::redriven, "redriven"},
      {TaskEvent::cancelled, "cancelled"}, {TaskEvent::away, "away"}};
  for (const auto& [event, name] : kNames) EXPECT_EQ(to_string(event), name);
}

}  // namespace
}  // namespace detent
