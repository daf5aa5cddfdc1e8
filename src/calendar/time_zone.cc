#include "calendar/time_zone.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace detent {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::size_t kHeaderSize = 44;
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

/// Reads a signed big-endian integer of `size` bytes. Requires: `bytes` is long enough.
std::int64_t read_integer(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = (std::to_integer<unsigned>(bytes[offset]) & 0x80U) != 0 ? ~0ULL : 0;
  for (const std::byte byte : bytes.subspan(offset, size)) {
    value = value << 8 | std::to_integer<std::uint64_t>(byte);
  }
  return static_cast<std::int64_t>(value);
}

/// The number of entries in each part of a block. The header before the block has these numbers.
struct Counts {
  std::size_t utc_marks, standard_marks, leap_seconds, changes, types, characters;

  std::size_t block_size(std::size_t time_size) const noexcept {
    return changes * (time_size + 1) + types * 6 + characters + leap_seconds * (time_size + 4) +
           standard_marks + utc_marks;
  }
};

std::optional<Counts> read_header(std::span<const std::byte> bytes) {
  constexpr std::string_view kMagic = "TZif";
  if (bytes.size() < kHeaderSize) return std::nullopt;
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    if (std::to_integer<char>(bytes[i]) != kMagic[i]) return std::nullopt;
  }
  if (std::to_integer<char>(bytes[4]) < '2') return std::nullopt;
  const auto count = [&](std::size_t index) {
    return static_cast<std::size_t>(read_integer(bytes, 20 + index * 4, 4) & 0xFFFFFFFF);
  };
  const Counts counts{count(0), count(1), count(2), count(3), count(4), count(5)};
  const std::size_t most = std::max({counts.utc_marks, counts.standard_marks, counts.leap_seconds,
                                     counts.changes, counts.types, counts.characters});
  if (most > kLargestFile || counts.types == 0) return std::nullopt;
  return counts;
}

/// Reads the footer after the second block: a line feed, the rule, a line feed.
std::optional<ZoneRule> read_footer(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text.push_back(std::to_integer<char>(byte));
  if (text.size() < 2 || text.front() != '\n' || text.back() != '\n') return std::nullopt;
  return parse_zone_rule(std::string_view(text).substr(1, text.size() - 2));
}

Error not_usable(std::string_view why) {
  return Error{ErrorCode::invalid_argument, "not a usable time zone file: " + std::string(why)};
}

/// True for a valid zone name. A dot is not allowed, so a name cannot lead out of the directory.
bool is_zone_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '-' || c == '+' || c == '/';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '/' && name.back() != '/' &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

/// Compares ASCII letters without their case.
bool is_same_word(std::string_view one, std::string_view other) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(one, other, {}, lower, lower);
}

/// Returns the file of the zone `name`, in any letter case, below `directory`. If no zone has this
/// name, the returned file does not exist. Cost: if the letter case differs, it lists one directory
/// for each part of the name.
std::filesystem::path find_file(std::string_view name, std::filesystem::path directory) {
  std::filesystem::path file = directory / name;
  std::error_code error;
  if (std::filesystem::exists(file, error)) return file;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    std::filesystem::path found = directory / part;
    std::filesystem::directory_iterator entry(directory, error);
    for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      if (is_same_word(entry->path().filename().native(), part)) found = entry->path();
    }
    directory = std::move(found);
  }
  return directory;
}

}  // namespace

Result<TimeZone> TimeZone::load(std::string_view name, std::string_view directory) {
  if (is_same_word(name, "UTC")) return utc();
  if (!is_zone_name(name)) {  // not quoted in the error, because it may have a line break
    return Error{ErrorCode::invalid_argument,
                 "a time zone name must have only letters, digits and _ + - /, such as "
                 "Europe/Berlin"};
  }
  const Error unknown{ErrorCode::invalid_argument,
                      "no time zone '" + std::string(name) + "' in " + std::string(directory) +
                          "; use a name of the tz database, such as Europe/Berlin"};
  const std::filesystem::path path = find_file(name, directory);
  std::ifstream file(path, std::ios::binary);
  std::string content;
  content.resize(kLargestFile);
  // If the name is a directory, reading fails as well. A directory is part of many zone names, but
  // it is not a zone.
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.gcount() <= 0) return unknown;
  content.resize(static_cast<std::size_t>(file.gcount()));
  auto zone = parse(std::as_bytes(std::span(content)));
  if (!zone) return with_context(name, std::move(zone).error());
  zone->name_ = path.lexically_relative(directory).string();
  return zone;
}

Result<TimeZone> TimeZone::parse(std::span<const std::byte> bytes) {
  const auto narrow = read_header(bytes);
  if (!narrow) return not_usable("no header of version 2 or later");
  const std::size_t second = kHeaderSize + narrow->block_size(4);
  if (bytes.size() < second) return not_usable("truncated");
  bytes = bytes.subspan(second);
  const auto counts = read_header(bytes);
  if (!counts) return not_usable("no second header");
  if (counts->leap_seconds != 0) return not_usable("it counts leap seconds");
  bytes = bytes.subspan(kHeaderSize);
  if (bytes.size() < counts->block_size(8)) return not_usable("truncated");
  const auto rule = read_footer(bytes.subspan(counts->block_size(8)));
  if (!rule) return not_usable("no rule at its end");

  const std::size_t types = counts->changes * 9;
  const auto offset_of = [&](std::size_t type) {
    return seconds{read_integer(bytes, types + type * 6, 4)};
  };
  TimeZone zone;
  zone.rule_ = *rule;
  zone.first_offset_ = offset_of(0);
  for (std::size_t i = 0; i < counts->changes; ++i) {
    const auto type = std::to_integer<std::size_t>(bytes[counts->changes * 8 + i]);
    const sys_seconds at{seconds{read_integer(bytes, i * 8, 8)}};
    const bool is_ordered = zone.changes_.empty() || at > zone.changes_.back().at;
    if (type >= counts->types || !is_ordered) return not_usable("its table is damaged");
    zone.add_change({at, offset_of(type)});
  }
  return zone;
}

/// Adds a change of the table. Leaves out a change that only renames the zone, and applies a change
/// before kBeginOfTime to `first_offset_`.
void TimeZone::add_change(OffsetChange change) {
  const seconds offset = changes_.empty() ? first_offset_ : changes_.back().offset;
  if (change.at <= kBeginOfTime) {
    first_offset_ = change.offset;
  } else if (change.offset != offset) {
    changes_.push_back(change);
  }
}

OffsetSpan TimeZone::span_at(sys_seconds time) const {
  const auto next =
      std::upper_bound(changes_.begin(), changes_.end(), time,
                       [](sys_seconds value, const OffsetChange& c) { return value < c.at; });
  if (next == changes_.end()) return rule_span_at(time);
  if (next == changes_.begin()) return {kBeginOfTime, next->at, first_offset_};
  return {std::prev(next)->at, next->at, std::prev(next)->offset};
}

/// The span at a time after the table's last change. Ignores changes of the rule before that time.
OffsetSpan TimeZone::rule_span_at(sys_seconds time) const {
  const sys_seconds table_end = changes_.empty() ? kBeginOfTime : changes_.back().at;
  const seconds table_offset = changes_.empty() ? first_offset_ : changes_.back().offset;
  OffsetSpan span{table_end, kEndOfTime, table_offset};
  if (!rule_.saving) return span;
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  for (int years = -1; years <= 1; ++years) {
    for (const OffsetChange& change : rule_.changes_in(date.year() + std::chrono::years{years})) {
      if (change.at <= table_end || change.offset == span.offset) continue;
      if (change.at > time) {
        span.end = change.at;
        return span;
      }
      span.begin = change.at;
      span.offset = change.offset;
    }
  }
  return span;
}

/// Two years after the table's last change, both the span and the span before it come from the
/// rule.
sys_seconds TimeZone::repeats_from() const {
  return changes_.empty() ? kBeginOfTime : changes_.back().at + std::chrono::days{2 * 366};
}

std::vector<sys_seconds> TimeZone::instants_of(std::chrono::local_seconds local, Gap gap,
                                               Repeat repeat) const {
  const sys_seconds as_utc{local.time_since_epoch()};
  std::vector<sys_seconds> found;
  std::optional<sys_seconds> after_gap;
  OffsetSpan span = span_at(as_utc - kMostOffsetDifference);
  for (;;) {
    const sys_seconds time = span.to_utc(local);
    if (time >= span.begin && time < span.end) found.push_back(time);
    if (span.end > as_utc + kMostOffsetDifference) break;
    const OffsetSpan next = span_at(span.end);
    if (time >= span.end && next.to_utc(local) < span.end) after_gap = span.end;
    span = next;
  }
  if (found.empty()) {
    if (gap == Gap::run_after && after_gap) found.push_back(*after_gap);
    return found;
  }
  if (repeat == Repeat::first) found.resize(1);
  if (repeat == Repeat::second) found = {found.back()};
  return found;
}

}  // namespace detent
