#include "server/watch/change_log.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "protocol/json/stats_point.h"

namespace detent::server {
namespace {

/// After so long a client that lost its connection asks again.
constexpr std::string_view kRetry = "retry: 2000\n";

/// Takes a decimal number and the text `end` from the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text, std::string_view end) noexcept {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (!text.starts_with(end)) return std::nullopt;
  text.remove_prefix(end.size());
  return number;
}

}  // namespace

std::string event_text(std::string_view id, std::string_view name, std::string_view data) {
  std::string text;
  if (!id.empty()) text.append("id: ").append(id).append("\n");
  text.append("event: ").append(name).append("\n");
  return text.append("data: ").append(data).append("\n\n");
}

// ---- log ----------------------------------------------------------------------------------------

void ChangeLog::add(TaskChange change, Origin origin) {
  keep({.origin = origin, .change = std::move(change)});
}

void ChangeLog::add_missed(std::uint64_t count, Origin origin) {
  keep({.origin = origin, .missed = count});
}

void ChangeLog::add_gap() { keep({.origin = Origin::elsewhere, .is_gap = true}); }

const std::string& ChangeLog::text_of(std::uint64_t number) {
  Kept& kept = entries_[number - begin()];
  if (kept.text.empty()) {
    kept.text = event_text(id_of(number), "task", json::render_task_event(kept.entry.change));
  }
  return kept.text;
}

void ChangeLog::keep(Entry entry) {
  entries_.push_back({.entry = std::move(entry)});
  ++end_;
  if (entries_.size() > kMaxKept) entries_.pop_front();
}

void ChangeLog::forget() {
  entries_.clear();
  ++end_;  // a number without an event: a reader of the last event cannot continue after it
}

std::string ChangeLog::id_of(std::uint64_t number) const {
  return std::to_string(run_) + "-" + std::to_string(number);
}

std::optional<std::uint64_t> ChangeLog::after(std::string_view id) const noexcept {
  const std::optional<std::uint64_t> run = take_number(id, "-");
  if (!run || *run != run_) return std::nullopt;
  const std::optional<std::uint64_t> number = take_number(id, "");
  if (!number || !id.empty()) return std::nullopt;
  if (*number >= end_ || *number + 1 < begin()) return std::nullopt;
  return *number + 1;
}

// ---- reader -------------------------------------------------------------------------------------

ChangeReader::ChangeReader(const ChangeLog& log, EventFilter filter, std::string_view last_id,
                           std::string& out)
    : filter_(std::move(filter)), next_(log.end()), live_from_(log.end()) {
  out.append(kRetry);
  const std::optional<std::uint64_t> there = log.after(last_id);
  if (there) {
    next_ = *there;
    out.append("\n");
  } else if (last_id.empty()) {
    // With this id, a client that has received no event yet can also continue after a reconnect.
    out.append("id: ").append(log.id_of(next_ - 1)).append("\n\n");
  } else {
    out.append(event_text(log.id_of(next_ - 1), "missed", json::render_missed_event(std::nullopt)));
  }
}

void ChangeReader::read(ChangeLog& log, MonotonicTime now, std::string& out) {
  if (!filter_.tasks) {
    next_ = log.end();
    return;
  }
  if (now >= second_end_) {
    second_end_ = now + std::chrono::seconds{1};
    told_ = 0;
    tell_missed(log, out);
  }
  if (next_ < log.begin()) {
    missed_ += log.begin() - next_;
    next_ = log.begin();
  }
  for (std::size_t at_once = 0; next_ < log.end(); ++next_) {
    const ChangeLog::Entry& entry = log.at(next_);
    missed_ += entry.missed;
    has_gap_ |= entry.is_gap;
    const bool is_wanted = filter_.queue.empty() || entry.change.queue == filter_.queue;
    if (!entry.is_change() || !is_wanted) continue;
    if (next_ < live_from_) {
      if (at_once++ == kMaxAtOnce) return;
    } else if (told_++ >= kMaxPerSecond) {
      ++missed_;
      continue;
    }
    tell_missed(log, out);
    out.append(log.text_of(next_));
  }
}

void ChangeReader::tell_missed(const ChangeLog& log, std::string& out) {
  if (missed_ == 0 && !has_gap_) return;
  const std::uint64_t count = std::exchange(missed_, 0);
  const std::string data = json::render_missed_event(
      std::exchange(has_gap_, false) ? std::nullopt : std::optional(count));
  out.append(event_text(log.id_of(next_ - 1), "missed", data));
}

}  // namespace detent::server
