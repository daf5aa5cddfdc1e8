// Every cell of the table, stated a second time as a list of what is allowed: all else is a
// conflict.
#include "task/lifecycle.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace detent {
namespace {

using S = TaskState;
using V = TaskVerb;

constexpr S kStates[] = {S::scheduled, S::ready, S::leased, S::dead, S::completed, S::cancelled};
constexpr V kVerbs[] = {V::become_due, V::lease,   V::complete, V::fail,
                        V::fail_last,  V::release, V::cancel};

const std::map<std::pair<S, V>, S> kAllowed{
    {{S::scheduled, V::become_due}, S::ready},  //
    {{S::scheduled, V::cancel}, S::cancelled},  //
    {{S::ready, V::lease}, S::leased},          //
    {{S::ready, V::cancel}, S::cancelled},      //
    {{S::leased, V::complete}, S::completed},   //
    {{S::leased, V::fail}, S::scheduled},       //
    {{S::leased, V::fail_last}, S::dead},       //
    {{S::leased, V::release}, S::ready},        //
    {{S::dead, V::cancel}, S::cancelled},       //
};

TEST(Lifecycle, EveryCellIsAsWritten) {
  for (const S state : kStates) {
    for (const V verb : kVerbs) {
      const auto cell = kAllowed.find({state, verb});
      const std::optional<S> expected =
          cell == kAllowed.end() ? std::nullopt : std::optional(cell->second);
      EXPECT_EQ(next_state(state, verb), expected)
          << to_string(state) << ", verb " << static_cast<int>(verb);
    }
  }
}

TEST(Lifecycle, NothingLeadsOutOfAnEnd) {
  for (const V verb : kVerbs) {
    EXPECT_EQ(next_state(S::completed, verb), std::nullopt);
    EXPECT_EQ(next_state(S::cancelled, verb), std::nullopt);
  }
}

TEST(Lifecycle, EveryStateIsReachedFromScheduled) {
  std::set<S> reached{S::scheduled};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const S state : std::set<S>(reached)) {
      for (const V verb : kVerbs) {
        if (const auto next = next_state(state, verb)) reached.insert(*next);
      }
    }
  }
  EXPECT_EQ(reached.size(), std::size(kStates));
}

TEST(Lifecycle, StatesHaveTheirNamesOfTheGlossary) {
  std::set<std::string_view> names;
  for (const S state : kStates) names.insert(to_string(state));
  EXPECT_EQ(names, (std::set<std::string_view>{"scheduled", "ready", "leased", "dead", "completed",
                                               "cancelled"}));
}

}  // namespace
}  // namespace detent
