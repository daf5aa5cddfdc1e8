#include "cli/commands/top_screen.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/wall_time.h"
#include "cli/output/display.h"
#include "cli/output/text_table.h"

namespace detent::cli {

namespace {

using std::chrono::microseconds;

/// A short text for a number: "812", "12.3k", "4.5M".
std::string short_number(double value) {
  constexpr std::array<std::string_view, 5> kUnits{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::ostringstream out;
  const bool has_part = value < 99.95 && (unit > 0 || value != std::floor(value));
  out.setf(std::ios::fixed);
  out.precision(has_part ? 1 : 0);
  out << value << kUnits[unit];
  return out.str();
}

std::string short_time(const std::optional<microseconds>& time) {
  if (!time) return "-";
  const auto count = static_cast<double>(time->count());
  if (count < 1'000) return short_number(count) + "us";
  if (count < 1'000'000) return short_number(count / 1'000) + "ms";
  return short_number(count / 1'000'000) + "s";
}

/// An upper bound of a quantile: the bound of its bucket. The bounds are 1, 2, 4, … microseconds.
/// `part` is from 0 to 1.
std::optional<microseconds> quantile(const std::vector<std::uint64_t>& counts, double part) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  if (all == 0) return std::nullopt;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(all))));
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < counts.size() && seen + counts[bucket] < rank) seen += counts[bucket++];
  constexpr std::size_t kLargest = 50;  // a larger power of two could overflow
  return microseconds{std::int64_t{1} << std::min(bucket, kLargest)};
}

std::uint64_t difference(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

struct Sums {
  std::uint64_t scheduled = 0;
  std::uint64_t ready = 0;
  std::uint64_t leased = 0;
  std::uint64_t dead = 0;
};
Sums sums_of(const std::vector<QueueStats>& queues) {
  Sums sums;
  for (const QueueStats& queue : queues) {
    sums.scheduled += queue.scheduled;
    sums.ready += queue.ready;
    sums.leased += queue.leased;
    sums.dead += queue.dead;
  }
  return sums;
}

std::int64_t age_of(const QueueStats& queue) {
  return queue.oldest_ready_age ? queue.oldest_ready_age->count() : -1;
}

/// The value by which queues are sorted, largest first. Queues with equal values are sorted by
/// name.
std::int64_t weight_of(const QueueStats& queue, TopOrder order) {
  switch (order) {
    case TopOrder::ready:
      return static_cast<std::int64_t>(queue.ready);
    case TopOrder::late:
      return age_of(queue);
    case TopOrder::scheduled:
      return static_cast<std::int64_t>(queue.scheduled);
    case TopOrder::leased:
      return static_cast<std::int64_t>(queue.leased);
    case TopOrder::dead:
      return static_cast<std::int64_t>(queue.dead);
    case TopOrder::name:
      return 0;
  }
  return 0;  // unreachable for a valid TopOrder
}

std::vector<QueueStats> sorted(std::vector<QueueStats> queues, TopOrder order) {
  std::ranges::sort(queues, [order](const QueueStats& one, const QueueStats& other) {
    const std::int64_t left = weight_of(one, order);
    const std::int64_t right = weight_of(other, order);
    return left != right ? left > right : one.queue < other.queue;
  });
  return queues;
}

/// The heading of a column, with a star if the queues are sorted by it.
std::string head(std::string name, TopOrder column, TopOrder order) {
  return column == order ? std::move(name) + "*" : std::move(name);
}

/// The headings and the first `rows` queues in order.
std::vector<std::string> queue_lines(const TopView& view, std::size_t width, std::size_t rows) {
  const TopOrder order = view.order;
  std::vector<Row> table{
      {head("QUEUE", TopOrder::name, order), head("SCHEDULED", TopOrder::scheduled, order),
       head("READY", TopOrder::ready, order), head("LEASED", TopOrder::leased, order),
       head("DEAD", TopOrder::dead, order), head("OLDEST READY", TopOrder::late, order)}};
  const std::vector<QueueStats> queues = sorted(view.now.queues, order);
  for (const QueueStats& queue : queues) {
    if (table.size() > rows) break;
    table.push_back({printable(queue.queue), std::to_string(queue.scheduled),
                     std::to_string(queue.ready), std::to_string(queue.leased),
                     std::to_string(queue.dead),
                     queue.oldest_ready_age ? show_age(*queue.oldest_ready_age) : "-"});
  }
  std::ostringstream out;
  show_table(out, std::move(table), width, {0});
  std::istringstream in(std::move(out).str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

std::string tasks_line(const TopView& view) {
  const Sums sums = sums_of(view.now.queues);
  std::ostringstream out;
  out << "tasks    scheduled " << sums.scheduled << "   ready " << sums.ready << "   leased "
      << sums.leased << "   dead " << sums.dead;
  if (view.now.scope == json::StatsScope::some_queues) return out.str();
  out << "   in memory " << view.now.loaded;
  if (view.now.away) out << "   far " << *view.now.away;
  return out.str();
}

std::string rates_line(const TopRates& rates) {
  return "a second accepted " + short_number(rates.accepted) + "   fired " +
         short_number(rates.fired) + "   completed " + short_number(rates.completed) +
         "   failed " + short_number(rates.failed) + "   dead " + short_number(rates.dead);
}

std::string late_line(const TopView& view, const TopRates& rates) {
  return "late     p50 " + short_time(rates.late_half) + "   p99 " + short_time(rates.late_most) +
         "   workers waiting " + std::to_string(view.now.waiting_workers) + "   schedules " +
         std::to_string(view.now.schedules);
}

}  // namespace

std::optional<TopOrder> order_of_key(char key) noexcept {
  constexpr std::array<std::pair<char, TopOrder>, 6> kKeys{{{'r', TopOrder::ready},
                                                            {'l', TopOrder::late},
                                                            {'s', TopOrder::scheduled},
                                                            {'w', TopOrder::leased},
                                                            {'d', TopOrder::dead},
                                                            {'n', TopOrder::name}}};
  for (const auto& [known, order] : kKeys) {
    if (known == key) return order;
  }
  return std::nullopt;
}

TopRates rates_between(const json::ServerStats& before, const json::ServerStats& now) {
  const json::ServerStats nothing;
  const json::ServerStats& from = before.uptime < now.uptime ? before : nothing;
  const std::chrono::duration<double> time = now.uptime - from.uptime;
  const auto rate = [&](std::uint64_t TaskCounters::*count) {
    if (time.count() <= 0) return 0.0;
    return static_cast<double>(difference(from.counters.*count, now.counters.*count)) /
           time.count();
  };
  std::vector<std::uint64_t> late = now.lateness;
  for (std::size_t i = 0; i < std::min(late.size(), from.lateness.size()); ++i) {
    late[i] = difference(from.lateness[i], late[i]);
  }
  return {.accepted = rate(&TaskCounters::scheduled),
          .fired = rate(&TaskCounters::fired),
          .completed = rate(&TaskCounters::completed),
          .failed = rate(&TaskCounters::failed),
          .dead = rate(&TaskCounters::dead),
          .late_half = quantile(late, 0.5),
          .late_most = quantile(late, 0.99)};
}

std::vector<std::string> render_top(const TopView& view, std::size_t width, std::size_t height) {
  const TopRates rates = rates_between(view.before, view.now);
  const bool is_whole = view.now.scope == json::StatsScope::server;
  std::vector<std::string> lines{
      "detent " + printable(view.now.version) + " at " + printable(view.server) + ", up " +
          show_age(view.now.uptime),
      tasks_line(view), is_whole ? rates_line(rates) : std::string(kSomeQueuesOnly),
      is_whole ? late_line(view, rates) : std::string(), printable(view.trouble)};
  const std::size_t fixed = lines.size() + 1;  // with the line of the keys
  if (height > fixed + 1) {
    for (std::string& line : queue_lines(view, width, height - fixed - 1)) {
      lines.push_back(std::move(line));
    }
    lines.resize(height - 1);
    lines.emplace_back(
        "sort by: r ready  l late  s scheduled  w leased  d dead  n name     q quits");
  }
  lines.resize(std::min(lines.size(), height));
  for (std::string& line : lines) line = cut_to(line, width);
  return lines;
}

std::string render_top_line(const TopView& view) {
  const TopRates rates = rates_between(view.before, view.now);
  const Sums sums = sums_of(view.now.queues);
  std::ostringstream out;
  out << "up " << show_age(view.now.uptime) << "  scheduled " << sums.scheduled << "  ready "
      << sums.ready << "  leased " << sums.leased << "  dead " << sums.dead << "  accepted/s "
      << short_number(rates.accepted) << "  fired/s " << short_number(rates.fired)
      << "  completed/s " << short_number(rates.completed) << "  failed/s "
      << short_number(rates.failed) << "  late p50 " << short_time(rates.late_half) << "  p99 "
      << short_time(rates.late_most);
  return out.str();
}

}  // namespace detent::cli
