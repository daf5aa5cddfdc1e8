#include "tests/oracle/known_differences.h"

#include <algorithm>

#include "base/wall_time.h"
#include "detent/check.h"
#include "tests/oracle/data_lines.h"

namespace detent::oracle {
namespace {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

DifferenceKind kind_named(std::string_view name) {
  if (name == "gap") return DifferenceKind::gap;
  if (name == "odd repeat") return DifferenceKind::odd_repeat;
  DETENT_CHECK(name == "after February");
  return DifferenceKind::after_february;
}

std::chrono::sys_days day_named(const std::string& text) {
  return std::chrono::floor<std::chrono::days>(parse_rfc3339(text + "T00:00:00Z").value());
}

/// The span before `span`.
OffsetSpan span_before(const TimeZone& zone, const OffsetSpan& span) {
  return zone.span_at(span.begin - seconds{1});
}

}  // namespace

KnownDifferences read_known_differences() {
  KnownDifferences known;
  for (const std::string& line : lines_of("known_differences.txt")) {
    const auto parts = parts_of(line, " | ");
    DETENT_CHECK(parts.back().size() > 10);  // the reason
    if (parts.front() == "spelling") {
      DETENT_CHECK(parts.size() == 4);
      known.spellings.push_back({parts[1], parts[2]});
    } else if (parts.front() == "instant") {
      DETENT_CHECK(parts.size() == 6);
      known.instants.push_back({kind_named(parts[1]), parts[2], parts[3], day_named(parts[4])});
    } else {
      DETENT_CHECK(parts.front() == "zone" && parts.size() == 3);
      known.zones.push_back(parts[1]);
    }
  }
  return known;
}

std::string KnownDifferences::croners_spelling(std::string_view expression) const {
  const auto known =
      std::find_if(spellings.begin(), spellings.end(),
                   [&](const KnownSpelling& spelling) { return spelling.ours == expression; });
  return known == spellings.end() ? std::string(expression) : known->croners;
}

Explainer::Explainer(std::string_view expression, const TimeZone& zone)
    : local_times_(Cron::parse(expression).value()), zone_(zone) {}

bool Explainer::fits(local_seconds local) const {
  const WallTime time{sys_seconds{local.time_since_epoch()}};
  return local_times_.next_after(time - std::chrono::milliseconds{1}) == time;
}

// A run of croner is `gap` if it lies after a gap by at most the length of the gap, and if the
// expression fits the local time that a clock without the change would show. It is `odd_repeat` if
// the clocks were put back by anything but an hour, and croner runs at the second of two equal
// local times instead of the first.
std::optional<DifferenceKind> Explainer::kind_of_croners(sys_seconds time,
                                                         const Differences& all) const {
  const OffsetSpan span = zone_.span_at(time);
  const OffsetSpan before = span_before(zone_, span);
  const seconds change = span.offset - before.offset;
  if (time >= span.begin + std::chrono::abs(change)) return std::nullopt;
  if (change > seconds{0} && fits(before.to_local(time))) return DifferenceKind::gap;
  if (change < seconds{0} && change != -std::chrono::hours{1} &&
      all.only_ours.contains(time + change) && fits(span.to_local(time))) {
    return DifferenceKind::odd_repeat;
  }
  return std::nullopt;
}

/// croner counts a day that February lacks into March: the 31st is March 3. Then it continues its
/// search after that day. Returns true if `local` is in March before that day, so that croner loses
/// it. Checks in January whether the expression has such a day.
bool Explainer::is_lost_after_february(local_seconds local) const {
  const auto date = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day ymd{date};
  if (ymd.month() != std::chrono::March) return false;
  const auto february_last = (ymd.year() / std::chrono::February / std::chrono::last).day();
  for (auto day = february_last + std::chrono::days{1}; day <= std::chrono::day{31}; ++day) {
    const std::chrono::local_days in_january{ymd.year() / std::chrono::January / day};
    if (!fits(in_january + (local - date))) continue;
    return ymd.day() < std::chrono::day{} + (day - february_last);
  }
  return false;
}

std::optional<DifferenceKind> Explainer::kind_of_ours(sys_seconds time,
                                                      const Differences& all) const {
  const OffsetSpan span = zone_.span_at(time);
  if (is_lost_after_february(span.to_local(time))) return DifferenceKind::after_february;
  const seconds length = span.offset - zone_.span_at(span.end).offset;
  const bool is_first_of_two = length > seconds{0} && time >= span.end - length;
  if (!is_first_of_two || length == std::chrono::hours{1}) return std::nullopt;
  if (!all.only_croner.contains(time + length)) return std::nullopt;
  return kind_of_croners(time + length, all);
}

}  // namespace detent::oracle
