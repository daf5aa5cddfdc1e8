// The known differences between croner and Cron: known_differences.txt, and the meaning of its
// words.
//
// If croner spells an expression differently, it is asked with its own spelling. An instant that
// only one of the two gives must belong to one of three kinds. Each kind is computed exactly from
// the offsets of the zone and the local times of the expression. An instant is never accepted only
// because it is near a change of the clocks.
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

  /// The spelling of `expression` for croner.
  std::string croners_spelling(std::string_view expression) const;
};

/// Reads the file. Stops the test program if a line does not have the form that the head of the
/// file describes, or has no reason.
KnownDifferences read_known_differences();

/// Instants at which only one of the two runs an expression.
struct Differences {
  std::set<std::chrono::sys_seconds> only_croner;
  std::set<std::chrono::sys_seconds> only_ours;
};

/// Finds the kind of a difference. Requires: our runs use Gap::skip and Repeat::first.
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

  Cron local_times_;  // in UTC, because each local time exists exactly once there
  const TimeZone& zone_;
};

}  // namespace detent::oracle
