#include "cli/output/display.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/utf8.h"
#include "base/wall_time.h"
#include "detent/check.h"
#include "protocol/json/problem.h"
#include "task/limits.h"
#include "task/retry.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

/// A bar with the share of `room` that `count` is of `most`. Rounded up, so that a small count is
/// visible, too.
std::string bar(std::uint64_t count, std::uint64_t most, std::size_t room) {
  const double part = static_cast<double>(count) / static_cast<double>(most);
  const auto length = static_cast<std::size_t>(std::ceil(part * static_cast<double>(room)));
  return std::string(std::min(length, room), '#');
}

std::string webhook_of(const client::QueueSettings& settings) {
  if (!settings.sink.empty()) return "the sink " + printable(settings.sink);
  if (settings.webhook.empty()) return "none";
  const std::size_t keys = settings.webhook_keys;
  const std::string signed_by =
      keys == 0 ? "the server's key" : counted(keys, "keys") + " of the queue";
  return printable(settings.webhook) + ", signed by " + signed_by;
}

void show_server_figures(std::ostream& out, const json::ServerStats& stats) {
  const auto& counters = stats.counters;
  out << counted(stats.loaded, "tasks") << " in memory, "
      << counted(stats.waiting_workers, "workers") << " waiting";
  if (stats.away) out << ", " << counted(*stats.away, "far tasks") << " in the external scheduler";
  if (stats.is_away_lost) out << ", which has lost changes";
  if (stats.refuses_tasks) {
    out << "\nNew tasks are refused: the disk of the data folder is nearly full";
  }
  out << "\n\n";
  show_table(out, {{"SCHEDULED", "FIRED", "LEASED", "COMPLETED", "FAILED", "CANCELLED", "DEAD"},
                   {std::to_string(counters.scheduled), std::to_string(counters.fired),
                    std::to_string(counters.leased), std::to_string(counters.completed),
                    std::to_string(counters.failed), std::to_string(counters.cancelled),
                    std::to_string(counters.dead)}});
  if (counters.leases_expired + counters.conflicts + counters.quarantined > 0) {
    out << counters.leases_expired << " leases expired, " << counters.conflicts << " conflicts, "
        << counters.quarantined << " damaged records set aside\n";
  }
}

std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

/// Whether a terminal shows this character of UTF-8 in its place. Not shown are control characters,
/// those that have no width (U+200B to U+200F, U+FEFF), and those that break a line or turn its
/// direction (U+061C, U+2028 to U+202E, U+2066 to U+2069).
bool is_shown(std::string_view character) {
  const std::uint8_t last = byte_of(character.back());
  if (character.size() == 1) return last >= ' ' && last <= '~';
  if (character.starts_with("\xC2")) return last >= 0xA0;
  if (character == "\xD8\x9C" || character == "\xEF\xBB\xBF") return false;
  if (character.starts_with("\xE2\x80")) {
    return !(last >= 0x8B && last <= 0x8F) && !(last >= 0xA8 && last <= 0xAE);
  }
  if (character.starts_with("\xE2\x81")) return last < 0xA6 || last > 0xA9;
  return true;
}

/// `text` with \xNN for each byte that is not part of a shown character, and for the characters in
/// `escaped`.
std::string with_shown_characters(std::string_view text, std::string_view escaped) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_character_size(text), 1);
    const std::string_view character = text.substr(0, size);
    const bool is_valid = size > 1 || byte_of(character.front()) < 0x80;
    if (is_valid && is_shown(character) && escaped.find(character) == std::string_view::npos) {
      out += character;
    } else {
      for (const char c : character) {
        out.append("\\x").push_back(kHex[byte_of(c) >> 4]);
        out.push_back(kHex[byte_of(c) & 15]);
      }
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view things) {
  return std::to_string(count) + " " + std::string(things.substr(0, things.size() - (count == 1)));
}

std::string printable(const client::Payload& payload) {
  if (payload.kind == client::Payload::Kind::bytes) return printable(payload.data);
  std::string text = payload.data;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return with_shown_characters(text, "");
}

std::string printable(std::string_view text) { return with_shown_characters(text, "\\"); }

void show_accepted(std::ostream& out, const client::ScheduledTask& task) {
  out << task.id << "  " << to_string(task.state) << "  " << format_rfc3339(task.due_at)
      << (task.was_there ? "  was there already" : "") << '\n';
}

void show_task(std::ostream& out, const client::Task& task, std::size_t columns) {
  std::vector<Row> rows{{"id", std::to_string(task.id)},
                        {"queue", task.queue},
                        {"state", std::string(to_string(task.state))},
                        {"due at", format_rfc3339(task.due_at)},
                        {"created at", format_rfc3339(task.created_at)},
                        {"priority", std::to_string(task.priority)}};
  if (!task.key.empty()) rows.push_back({"key", printable(task.key)});
  std::string attempts = std::to_string(task.attempts);
  if (task.max_attempts) attempts += " of " + std::to_string(*task.max_attempts);
  rows.push_back({"attempts", std::move(attempts)});
  if (task.visibility_timeout) {
    rows.push_back({"visibility timeout", show_duration(*task.visibility_timeout)});
  }
  if (const auto& backoff = task.backoff) {
    rows.push_back(
        {"backoff", show_duration(backoff->initial) + " to " + show_duration(backoff->max)});
  }
  if (!task.last_error.empty()) rows.push_back({"last error", printable(task.last_error)});
  if (!task.webhook.empty()) rows.push_back({"webhook", printable(task.webhook)});
  for (const client::Header& header : task.headers) {
    rows.push_back({"header", printable(header.name + ": " + header.value)});
  }
  rows.push_back({"payload", printable(task.payload)});
  show_table(out, std::move(rows), columns, {1});
}

void show_tasks(std::ostream& out, std::span<const client::Task> tasks, std::size_t columns) {
  if (tasks.empty()) return;
  std::vector<Row> rows{
      {"ID", "QUEUE", "STATE", "DUE AT", "PRIORITY", "ATTEMPTS", "KEY", "PAYLOAD"}};
  for (const client::Task& task : tasks) {
    rows.push_back({std::to_string(task.id), task.queue, std::string(to_string(task.state)),
                    format_rfc3339(task.due_at), std::to_string(task.priority),
                    std::to_string(task.attempts), task.key.empty() ? "-" : printable(task.key),
                    printable(task.payload)});
  }
  constexpr std::size_t kQueue = 1;
  constexpr std::size_t kPriority = 4;
  constexpr std::size_t kAttempts = 5;
  constexpr std::size_t kKey = 6;
  constexpr std::size_t kPayload = 7;
  show_table(out, std::move(rows), columns, {kPayload, kKey, kQueue}, {kPriority, kAttempts});
}

void show_leased(std::ostream& out, std::span<const client::LeasedTask> tasks,
                 std::size_t columns) {
  if (tasks.empty()) return;
  std::vector<Row> rows{{"LEASE", "ID", "ATTEMPT", "LATE", "PAYLOAD"}};
  for (const client::LeasedTask& task : tasks) {
    rows.push_back({printable(task.lease), std::to_string(task.id), std::to_string(task.attempt),
                    show_duration(task.lateness), printable(task.payload)});
  }
  show_table(out, std::move(rows), columns, {4});
}

void show_outcomes(std::ostream& out, std::span<const std::string> leases,
                   std::span<const ClientResult<client::LeaseStatus>> outcomes) {
  DETENT_CHECK(leases.size() == outcomes.size());
  const auto shown = [](const ClientResult<client::LeaseStatus>& outcome) {
    if (outcome && *outcome == client::LeaseStatus::conflict) {
      return std::string("not held (expired, finished or unknown)");
    }
    if (outcome) return std::string(to_string(*outcome));
    const Error error = to_error(outcome.error());
    return std::string(json::lease_status_of(error)) + ": " + printable(error.message);
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    rows.push_back({printable(leases[i]), shown(outcomes[i])});
  }
  show_table(out, rows);
}

void show_stats(std::ostream& out, const json::ServerStats& stats, std::size_t columns) {
  out << "detent " << printable(stats.version) << ", up " << show_age(stats.uptime) << '\n';
  if (stats.scope == json::StatsScope::server) {
    show_server_figures(out, stats);
  } else {
    out << kSomeQueuesOnly << '\n';
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
  show_table(out, std::move(rows), columns, {0});
}

void show_queues(std::ostream& out, std::span<const client::Queue> queues, std::size_t columns) {
  std::vector<Row> rows{
      {"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "OLDEST READY", "BYTES", "STATE"}};
  for (const client::Queue& queue : queues) {
    rows.push_back({printable(queue.name), std::to_string(queue.scheduled),
                    std::to_string(queue.ready), std::to_string(queue.leased),
                    std::to_string(queue.dead),
                    queue.oldest_ready_age ? show_age(*queue.oldest_ready_age) : "-",
                    std::to_string(queue.bytes), queue.settings.paused ? "paused" : "open"});
  }
  show_table(out, std::move(rows), columns, {0});
}

void show_queue(std::ostream& out, const client::Queue& queue) {
  const client::QueueSettings& settings = queue.settings;
  const auto limit = [](const auto& most) { return most ? std::to_string(*most) : "none"; };
  const client::Backoff backoff = settings.backoff.value_or(client::Backoff{});
  const milliseconds timeout = settings.visibility_timeout.value_or(kDefaultVisibilityTimeout);
  show_table(out,
             {{"queue", printable(queue.name)},
              {"scheduled", std::to_string(queue.scheduled)},
              {"ready", std::to_string(queue.ready)},
              {"leased", std::to_string(queue.leased)},
              {"dead", std::to_string(queue.dead)},
              {"oldest ready", queue.oldest_ready_age ? show_age(*queue.oldest_ready_age) : "-"},
              {"bytes", std::to_string(queue.bytes)},
              {"paused", settings.paused ? "yes" : "no"},
              {"max attempts", std::to_string(settings.max_attempts.value_or(kDefaultMaxAttempts))},
              {"backoff", show_duration(backoff.initial) + " to " + show_duration(backoff.max)},
              {"visibility timeout", show_duration(timeout)},
              {"retention", show_duration(settings.retention)},
              {"key retention", show_duration(settings.key_retention)},
              {"max tasks", limit(settings.max_tasks)},
              {"max bytes", limit(settings.max_bytes)},
              {"rate", settings.rate ? std::to_string(*settings.rate) + " per second" : "none"},
              {"concurrency", limit(settings.concurrency)},
              {"webhook", webhook_of(settings)},
              {"partitions", std::to_string(settings.partitions)}});
}

void show_forecast(std::ostream& out, const Forecast& forecast, std::size_t columns) {
  constexpr std::size_t kMinuteText = sizeof("2026-01-02T03:04") - 1;
  const std::uint64_t most =
      forecast.counts.empty() ? 0
                              : *std::max_element(forecast.counts.begin(), forecast.counts.end());
  std::vector<Row> rows{{"FROM", "TASKS"}};
  const std::size_t text =
      kMinuteText + 1 + 2 + std::max<std::size_t>(5, std::to_string(most).size());
  const std::size_t room = columns > text + 2 && most > 0 ? columns - text - 2 : 0;
  WallTime from = forecast.from;
  for (const std::uint64_t count : forecast.counts) {
    rows.push_back({format_rfc3339(from).substr(0, kMinuteText) + "Z", std::to_string(count)});
    if (room > 0 && count > 0) rows.back().push_back(bar(count, most, room));
    from += forecast.bin;
  }
  show_table(out, rows);
  out << '\n'
      << "overdue: " << counted(forecast.overdue, "tasks")
      << "; due later: " << counted(forecast.later, "tasks") << '\n';
  if (forecast.coarse > 0) {
    out << forecast.coarse
        << " of these tasks are counted per day only, and are spread evenly over their day\n";
  }
}

void show_error(std::ostream& err, const Error& error) {
  // The server answers so if a request has no token, or a token that it does not know.
  if (error.code == ErrorCode::forbidden && error.message.starts_with("a token is needed")) {
    err << "detent: token required: set DETENT_TOKEN or --token\n"
           "If one is set, the server does not know it.\n";
    return;
  }
  const bool is_of_connection =
      error.code == ErrorCode::unavailable && error.message.starts_with("connect to ");
  // These texts are from OpenSSL. tls_server_test.cc and cli_test.cc check that the client passes
  // them on.
  const std::size_t no_tls = error.message.find("wrong version number");
  if (is_of_connection && no_tls != std::string::npos) {
    err << "detent: " << printable(error.message.substr(0, no_tls))
        << "server speaks plain HTTP; use http://\n";
    return;
  }
  err << "detent: " << printable(error.message);
  const bool has_field = !error.field.empty() && error.code != ErrorCode::not_found;
  if (has_field) err << " (" << printable(error.field) << ')';
  err << '\n';
  if (!is_of_connection) return;
  if (error.message.find("certificate verify failed") != std::string::npos) {
    err << "Name the PEM file of the authority that signed the server's certificate with --ca FILE "
           "or DETENT_CA. The certificate must be valid for the host in the address.\n";
  } else {
    err << "Is a server running there? `detent serve` starts one; --server URL or DETENT_URL names "
           "another.\n";
  }
}

}  // namespace detent::cli
