// Checks every cell of the table against a second form of it: a list of the allowed changes. All
// other changes are conflicts.
#include "task/lifecycle.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace detent {
namespace {

using S = TaskState;
using V = TaskVerb;
using From = std::optional<S>;

constexpr From kNoTask = std::nullopt;
constexpr S kStates[] = {S::scheduled, S::ready, S::leased, S::dead, S::completed, S::cancelled};
constexpr From kFrom[] = {kNoTask, S::scheduled, S::ready,    S::leased,
                          S::dead, S::completed, S::cancelled};
constexpr V kVerbs[] = {V::schedule,     V::restore,       V::restore_dead,  V::become_due,
                        V::move,         V::edit,          V::run_now,       V::run_scheduled,
                        V::lease,        V::complete,      V::fail,          V::fail_last,
                        V::extend,       V::release,       V::release_later, V::run_out,
                        V::run_out_last, V::run_out_ready, V::bury,          V::redrive,
                        V::cancel,       V::purge};
static_assert(std::size(kVerbs) == static_cast<std::size_t>(V::purge) + 1);

const std::map<std::pair<From, V>, S> kAllowed{
    {{kNoTask, V::schedule}, S::scheduled},         //
    {{kNoTask, V::restore}, S::scheduled},          //
    {{kNoTask, V::restore_dead}, S::dead},          //
    {{S::scheduled, V::become_due}, S::ready},      //
    {{S::scheduled, V::move}, S::scheduled},        //
    {{S::scheduled, V::edit}, S::scheduled},        //
    {{S::scheduled, V::run_now}, S::ready},         //
    {{S::scheduled, V::run_scheduled}, S::ready},   //
    {{S::scheduled, V::cancel}, S::cancelled},      //
    {{S::scheduled, V::purge}, S::cancelled},       //
    {{S::ready, V::move}, S::scheduled},            //
    {{S::ready, V::edit}, S::ready},                //
    {{S::ready, V::run_now}, S::ready},             //
    {{S::ready, V::lease}, S::leased},              //
    {{S::ready, V::cancel}, S::cancelled},          //
    {{S::ready, V::purge}, S::cancelled},           //
    {{S::leased, V::complete}, S::completed},       //
    {{S::leased, V::fail}, S::scheduled},           //
    {{S::leased, V::fail_last}, S::dead},           //
    {{S::leased, V::extend}, S::leased},            //
    {{S::leased, V::release}, S::ready},            //
    {{S::leased, V::release_later}, S::scheduled},  //
    {{S::leased, V::run_out}, S::scheduled},        //
    {{S::leased, V::run_out_last}, S::dead},        //
    {{S::leased, V::run_out_ready}, S::ready},      //
    {{S::leased, V::bury}, S::dead},                //
    {{S::dead, V::move}, S::scheduled},             //
    {{S::dead, V::edit}, S::dead},                  //
    {{S::dead, V::run_now}, S::ready},              //
    {{S::dead, V::redrive}, S::ready},              //
    {{S::dead, V::cancel}, S::cancelled},           //
    {{S::dead, V::purge}, S::cancelled},            //
};

TEST(Lifecycle, EveryCellIsAsWritten) {
  for (const From& state : kFrom) {
    for (const V verb : kVerbs) {
      const auto cell = kAllowed.find({state, verb});
      const std::optional<S> expected =
          cell == kAllowed.end() ? std::nullopt : std::optional(cell->second);
      EXPECT_EQ(next_state(state, verb), expected)
          << (state ? to_string(*state) : "no task") << ", verb " << static_cast<int>(verb);
    }
  }
}

TEST(Lifecycle, NoVerbLeadsOutOfAnEnd) {
  for (const V verb : kVerbs) {
    EXPECT_EQ(next_state(S::completed, verb), std::nullopt);
    EXPECT_EQ(next_state(S::cancelled, verb), std::nullopt);
  }
}

TEST(Lifecycle, OnlyTheHolderOfALeaseChangesALeasedTask) {
  for (const V verb : {V::schedule, V::restore, V::restore_dead, V::become_due, V::move, V::edit,
                       V::run_now, V::run_scheduled, V::lease, V::redrive, V::cancel, V::purge}) {
    EXPECT_EQ(next_state(S::leased, verb), std::nullopt) << static_cast<int>(verb);
  }
}

TEST(Lifecycle, EveryStateIsReachedFromNoTask) {
  std::set<From> reached{kNoTask};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const From& state : std::set<From>(reached)) {
      for (const V verb : kVerbs) {
        if (const auto next = next_state(state, verb)) reached.insert(*next);
      }
    }
  }
  EXPECT_EQ(reached.size(), std::size(kFrom));
}

TEST(LifecycleDeathTest, AVerbThatTheTableDoesNotAllowStopsTheProcess) {
  EXPECT_EQ(state_after(S::leased, V::release), S::ready);
  EXPECT_EQ(state_after(S::leased, V::release_later), S::scheduled);
  EXPECT_DEATH(state_after(S::dead, V::release), "check failed");
}

TEST(Lifecycle, ATaskIsLiveUntilItIsDeadOrHasEnded) {
  for (const S state : kStates) {
    const bool has_lease_ahead =
        state == S::leased || next_state(state, V::lease) || next_state(state, V::become_due);
    EXPECT_EQ(is_live(state), has_lease_ahead) << to_string(state);
  }
}

TEST(Lifecycle, StatesHaveTheNamesOfTheGlossary) {
  std::set<std::string_view> names;
  for (const S state : kStates) names.insert(to_string(state));
  EXPECT_EQ(names, (std::set<std::string_view>{"scheduled", "ready", "leased", "dead", "completed",
                                               "cancelled"}));
}

TEST(Lifecycle, OnlyNamesOfStatesAreParsed) {
  for (const S state : kStates) EXPECT_EQ(parse_task_state(to_string(state)), state);
  for (const char* const text : {"", "lease", "leased ", "Ready", "unknown"}) {
    EXPECT_EQ(parse_task_state(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace detent
