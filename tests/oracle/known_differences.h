// Where croner and ours are known to differ: known_differences.txt, and what its words mean.
//
// A spelling is asked of croner in its own words. An instant that only one of them gives must
// belong to one of three kinds, each worked out from the zone's offsets and the expression's local
// times alone; nothing is let through because it is near a change of the clocks.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "calendar/time_zone.h"
#include "detent/cron.h"

namespace detent::oracle {

enum class DifferenceKind : std::uint8_t { gap, odd_repeat, after_february };

struct KnownSpelling {
  std::string ours;
  std::string croners;
};

struct KnownInstant {
  DifferenceKind kind;
  std::string expression;
  std::string zone;
  std::chrono::sys_days day;
};

struct KnownDifferences {
  std::vector<KnownSpelling> spellings;
  std::vector<KnownInstant> instants;
  std::vector<std::string> zones;

  /// How croner is asked about `expression`.
  std::string croners_spelling(std::string_view expression) const;
};

/// Stops the test program when a line is not as the file's head says, or has no reason.
KnownDifferences read_known_differences();

/// Instants at which only one of two says that an expression runs.
struct Differences {
  std::set<std::chrono::sys_seconds> only_croner;
  std::set<std::chrono::sys_seconds> only_ours;
};

/// Tells what kind of difference an instant is. Requires: ours are with Gap::skip, Repeat::first.
class Explainer {
 public:
  Explainer(std::string_view expression, const TimeZone& zone);

  std::optional<DifferenceKind> kind_of_croners(std::chrono::sys_seconds time,
                                                const Differences& all) const;
  std::optional<DifferenceKind> kind_of_ours(std::chrono::sys_seconds time,
                                             const Differences& all) const;

 private:
  bool fits(std::chrono::local_seconds local) const;
  bool is_lost_after_february(std::chrono::local_seconds local) const;

  Cron local_times_;  // in UTC, where every local time exists once
  const TimeZone& zone_;
};

}  // namespace detent::oracle
