#include "cli/display.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wall_time.h"
#include "detent/check.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;
using Row = std::vector<std::string>;

/// Rows of equal length, the first one the heads; two blanks between columns, none at the end.
void show_table(std::ostream& out, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << row[i];
      if (i + 1 < row.size()) out << std::string(widths[i] + 2 - row[i].size(), ' ');
    }
    out << '\n';
  }
}

struct Unit {
  std::int64_t ms;
  const char* name;
};
constexpr std::array<Unit, 5> kUnits{
    {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1'000, "s"}, {1, "ms"}}};

/// "1500ms", "90s": exact, in the largest unit that is.
std::string show_duration(milliseconds duration) {
  for (const Unit& unit : kUnits) {
    if (duration.count() != 0 && duration.count() % unit.ms == 0) {
      return std::to_string(duration.count() / unit.ms) + unit.name;
    }
  }
  return "0ms";
}

/// "3h 12m", "1s 500ms": rounded down to the two largest units that say something.
std::string show_age(milliseconds age) {
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    const Unit& large = kUnits[i];
    const Unit& small = kUnits[i + 1];
    if (age.count() < large.ms) continue;
    std::string text = std::to_string(age.count() / large.ms) + large.name;
    if (const std::int64_t rest = age.count() % large.ms / small.ms; rest > 0) {
      text += " " + std::to_string(rest) + small.name;
    }
    return text;
  }
  return show_duration(age);
}

}  // namespace

std::string printable(const Payload& payload) {
  if (payload.kind == Payload::Kind::bytes) return printable(payload.data);
  std::string text = payload.data;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return text;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    out.append("\\x").push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

void show_accepted(std::ostream& out, const Client::AcceptedTask& task) {
  out << to_string(task.id) << "  " << to_string(task.state) << "  " << format_rfc3339(task.due_at)
      << '\n';
}

void show_task(std::ostream& out, const TaskView& view) {
  const Task& task = view.task;
  std::vector<Row> rows{{"id", to_string(task.id)},
                        {"queue", task.queue},
                        {"state", std::string(to_string(view.state))},
                        {"due at", format_rfc3339(task.due_at)},
                        {"created at", format_rfc3339(task.created_at)},
                        {"priority", std::to_string(task.rules.priority)}};
  std::string attempts = std::to_string(task.attempts);
  if (task.rules.max_attempts) attempts += " of " + std::to_string(*task.rules.max_attempts);
  rows.push_back({"attempts", std::move(attempts)});
  if (task.rules.visibility_timeout) {
    rows.push_back({"visibility timeout", show_duration(*task.rules.visibility_timeout)});
  }
  if (const auto& backoff = task.rules.backoff) {
    rows.push_back(
        {"backoff", show_duration(backoff->initial) + " to " + show_duration(backoff->max)});
  }
  if (!task.last_error.empty()) rows.push_back({"last error", printable(task.last_error)});
  rows.push_back({"payload", printable(task.payload)});
  show_table(out, rows);
}

void show_leased(std::ostream& out, std::span<const Client::LeasedTask> tasks) {
  if (tasks.empty()) return;
  std::vector<Row> rows{{"LEASE", "ID", "ATTEMPT", "LATE", "PAYLOAD"}};
  for (const Client::LeasedTask& task : tasks) {
    rows.push_back({printable(task.lease), to_string(task.id), std::to_string(task.attempt),
                    show_duration(task.lateness), printable(task.payload)});
  }
  show_table(out, rows);
}

void show_outcomes(std::ostream& out, std::span<const std::string> leases,
                   std::span<const Result<LeaseOutcome>> outcomes) {
  DETENT_CHECK(leases.size() == outcomes.size());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    rows.push_back({printable(leases[i]), outcomes[i] ? std::string(to_string(*outcomes[i]))
                                                      : printable(outcomes[i].error().message)});
  }
  show_table(out, rows);
}

void show_stats(std::ostream& out, const Client::Stats& stats) {
  const auto& counters = stats.counters;
  out << "detent " << printable(stats.version) << ", up " << show_age(stats.uptime) << '\n';
  out << stats.loaded << " tasks in memory, " << stats.waiting_workers << " workers waiting\n\n";
  show_table(out, {{"SCHEDULED", "FIRED", "LEASED", "COMPLETED", "FAILED", "CANCELLED", "DEAD"},
                   {std::to_string(counters.scheduled), std::to_string(counters.fired),
                    std::to_string(counters.leased), std::to_string(counters.completed),
                    std::to_string(counters.failed), std::to_string(counters.cancelled),
                    std::to_string(counters.dead)}});
  if (counters.leases_expired + counters.conflicts + counters.quarantined > 0) {
    out << counters.leases_expired << " leases ran out, " << counters.conflicts << " conflicts, "
        << counters.quarantined << " damaged records set aside\n";
  }
  if (stats.queues.empty()) return;
  std::vector<Row> rows{{"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "OLDEST READY"}};
  for (const auto& queue : stats.queues) {
    rows.push_back({printable(queue.queue), std::to_string(queue.scheduled),
                    std::to_string(queue.ready), std::to_string(queue.leased),
                    std::to_string(queue.dead),
                    queue.oldest_ready_age ? show_age(*queue.oldest_ready_age) : "-"});
  }
  out << '\n';
  show_table(out, rows);
}

void show_error(std::ostream& err, const Error& error) {
  err << "detent: " << printable(error.message);
  if (!error.field.empty()) err << " (" << printable(error.field) << ')';
  err << '\n';
}

}  // namespace detent::cli
