// Parses any text as a cron expression. An accepted expression must give the same times in each way
// of asking: one by one, several together, backwards, in capitals.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detent/check.h"
#include "detent/cron.h"
#include "tests/fuzz/fuzz_inputs.h"
#include "tests/fuzz/input_bytes.h"

namespace detent::fuzz {

namespace {

constexpr std::array<std::string_view, 6> kZones{
    "UTC",         "Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Africa/Casablanca",
    "Pacific/Apia"};

CronOptions options_of(unsigned bits) {
  CronOptions options;
  if ((bits & 3) < 2) options.gap = static_cast<Gap>(bits & 3);
  if ((bits >> 2 & 3) < 3) options.repeat = static_cast<Repeat>(bits >> 2 & 3);
  return options;
}

/// A time from 1960 to 10010, so that inputs reach both ends of the supported range.
WallTime near_time(InputBytes& bytes) {
  using std::chrono::days;
  const WallTime begin = WallTime{} - days{3653};
  constexpr std::uint64_t kSpan = std::uint64_t{8050} * 365 * 86'400'000;
  return begin + std::chrono::milliseconds{static_cast<std::int64_t>(bytes.number(8) % kSpan)};
}

void expect_steps_agree(const Cron& cron, WallTime from) {
  const std::vector<WallTime> times = cron.next(4, from);
  WallTime last = from;
  for (const WallTime time : times) {
    DETENT_CHECK(time > last);
    DETENT_CHECK(cron.next_after(last) == time);
    DETENT_CHECK(cron.next_after(time - std::chrono::milliseconds{1}) == time);
    last = time;
  }
  if (times.size() < 4) DETENT_CHECK(cron.next_after(last) == std::nullopt);
  for (std::size_t i = 1; i < times.size(); ++i) {
    DETENT_CHECK(cron.prev_before(times[i]) == times[i - 1]);
  }
  const std::optional<WallTime> before = cron.prev_before(from);
  DETENT_CHECK(!before || *before < from);
  if (!before || times.empty()) return;
  const std::optional<WallTime> after = cron.next_after(*before);
  DETENT_CHECK(after == from || after == times.front());
}

}  // namespace

void cron_expressions(std::string_view input) {
  InputBytes bytes(input);
  const std::string_view zone = kZones.at(bytes.byte() % kZones.size());
  const CronOptions options = options_of(bytes.byte());
  const WallTime from = near_time(bytes);
  const std::string expression(bytes.rest());
  const auto cron = Cron::parse(expression, zone, options);
  if (!cron) {
    DETENT_CHECK(!cron.error().message.empty());
    DETENT_CHECK(cron.error().column <= expression.size() + 1);
    return;
  }
  DETENT_CHECK(cron.value().expression() == expression && cron.value().zone() == zone);
  const std::string words = cron.value().explain();
  DETENT_CHECK(!words.empty());
  DETENT_CHECK(std::all_of(words.begin(), words.end(), [](char c) { return c >= ' '; }));
  expect_steps_agree(cron.value(), from);
  if (expression.find('@') != std::string::npos)
    return;  // in "@every 5m", capitals would change the unit

  std::string loud = expression;
  for (char& c : loud) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto same = Cron::parse(loud, zone, options);
  DETENT_CHECK(same.has_value());
  DETENT_CHECK(same.value().explain() == words);
  DETENT_CHECK(same.value().next(4, from) == cron.value().next(4, from));
}

}  // namespace detent::fuzz
