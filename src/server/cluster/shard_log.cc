#include "server/cluster/shard_log.h"

#include <algorithm>
#include <utility>

#include "base/log/log.h"

namespace detent::server {
namespace {

/// A shard that fails again after this time has a new failure.
constexpr auto kForgotten = 2 * LogPace::kPeriod;

}  // namespace

std::string_view to_string(ShardEnd end) noexcept {
  switch (end) {
    case ShardEnd::moved:
      return "other nodes get their share";
    case ShardEnd::stopping:
      return "this node stops";
    case ShardEnd::failed:
      return "the store failed";
    case ShardEnd::not_opened:
      return "the store cannot be opened";
    case ShardEnd::lost:
      return "this node lost the shard";
  }
  return "";
}

std::string show_shards(const std::set<ShardNumber>& shards) {
  std::string text;
  for (auto it = shards.begin(); it != shards.end();) {
    const ShardNumber first = *it;
    ShardNumber last = first;
    while (++it != shards.end() && *it == last + 1) last = *it;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last != first) text += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return text;
}

ShardLog::ShardLog(const Clock& clock, std::function<void()> on_next_line)
    : clock_(clock), on_next_line_(std::move(on_next_line)) {}

ShardLog::~ShardLog() { write_all(); }

void ShardLog::serving(const ShardLease& shard, const std::string& from) {
  log_debug("serving a shard", {{"shard", shard.shard}, {"epoch", shard.epoch}});
  gather(Kind::serving, shard.shard, from);
}

void ShardLog::not_opened(const ShardLease& shard, const std::string& cause) {
  log_debug("a shard cannot be opened",
            {{"shard", shard.shard}, {"epoch", shard.epoch}, {"cause", cause}});
  gather(Kind::not_opened, shard.shard, "", cause);
}

void ShardLog::failed(const ShardLease& shard, const std::string& cause) {
  log_debug("a shard's store failed; giving up the shard",
            {{"shard", shard.shard}, {"epoch", shard.epoch}, {"cause", cause}});
  gather(Kind::failed, shard.shard, "", cause);
}

void ShardLog::lost(const ShardLease& shard) {
  log_debug("the node lost a shard; its task leases are invalid",
            {{"shard", shard.shard}, {"epoch", shard.epoch}});
  gather(Kind::lost, shard.shard, "");
}

void ShardLog::closed(const ShardLease& shard, ShardEnd end) {
  log_debug("a shard is closed",
            {{"shard", shard.shard}, {"epoch", shard.epoch}, {"reason", to_string(end)}});
  // A line about the other ends has been gathered already.
  if (end != ShardEnd::moved && end != ShardEnd::stopping) return;
  gather(Kind::closed, shard.shard, std::string(to_string(end)));
}

void ShardLog::gather(Kind kind, ShardNumber shard, std::string detail, const std::string& cause) {
  {
    const MutexLock lock(mutex_);
    const MonotonicTime now = clock_.now();
    if (is_failure(kind)) note_failure(kind, shard, now);
    const auto failure = failures_.find(shard);
    if (kind == Kind::serving && failure != failures_.end()) {
      failure->second.is_away = false;
      // A failure that has ended is told only if its line was not held back.
      for (Line& held : lines_) {
        if (held.is_held) held.shards.erase(shard);
      }
      std::erase_if(lines_, [](const Line& one) { return one.shards.empty(); });
    }
    const auto line = std::ranges::find_if(
        lines_, [&](const Line& one) { return one.kind == kind && one.detail == detail; });
    if (line != lines_.end()) {
      line->shards.insert(shard);
      return;
    }
    lines_.push_back({kind,
                      std::move(detail),
                      cause,
                      {shard},
                      now + (is_failure(kind) ? kGatherFailures : kGather)});
  }
  on_next_line_();
}

void ShardLog::note_failure(Kind kind, ShardNumber shard, MonotonicTime now) {
  Failure& failure = failures_.try_emplace(shard, Failure{kind, now, now}).first->second;
  failure.kind = kind;
  if (now - failure.last >= kForgotten) failure.first = now;
  failure.last = now;
  failure.is_away = true;
}

std::optional<MonotonicTime> ShardLog::next_line() const {
  const MutexLock lock(mutex_);
  if (lines_.empty()) return std::nullopt;
  return std::ranges::min(lines_, {}, &Line::due).due;
}

bool ShardLog::is_due(Line& line, MonotonicTime now) {
  if (now < line.due) return false;
  if (!is_failure(line.kind)) return true;
  LogPace& pace = line.kind == Kind::failed ? failed_pace_ : not_opened_pace_;
  line.due = now + kNextLook;
  line.is_held = !pace.is_worth_a_line(line.cause, now);
  return !line.is_held;
}

void ShardLog::write() {
  const MutexLock lock(mutex_);
  const MonotonicTime now = clock_.now();
  std::vector<Line> kept;
  for (Line& line : lines_) {
    if (is_due(line, now)) {
      tell(line, now);
    } else {
      kept.push_back(std::move(line));
    }
  }
  lines_ = std::move(kept);
}

void ShardLog::write_all() {
  const MutexLock lock(mutex_);
  for (const Line& line : lines_) tell(line, clock_.now());
  lines_.clear();
}

/// Also names the shards of the lines before that are still away.
void ShardLog::tell_failure(const Line& line, MonotonicTime now) {
  std::set<ShardNumber> shards = line.shards;
  MonotonicTime first = now;
  for (const auto& [shard, failure] : failures_) {
    const bool is_away = failure.is_away && now - failure.last < kForgotten;
    if (is_away && failure.kind == line.kind) shards.insert(shard);
    if (shards.contains(shard)) first = std::min(first, failure.first);
  }
  // A moment in which lines are gathered is not worth a field.
  const bool goes_on = now - first > kGatherFailures + kNextLook;
  log_error(line.kind == Kind::failed ? "the store of shards failed; giving up the shards"
                                      : "shards cannot be opened",
            {{"count", shards.size()},
             {"shards", show_shards(shards)},
             {"cause", line.cause},
             {"since", goes_on ? shown_since(first, now) : std::nullopt},
             {"action", "check the database; a node takes the shards again by itself"}});
}

void ShardLog::tell(const Line& line, MonotonicTime now) {
  const LogField count{"count", line.shards.size()};
  const LogField shards{"shards", show_shards(line.shards)};
  switch (line.kind) {
    case Kind::serving:
      return log_info("serving shards",
                      {count,
                       shards,
                       {"from", line.detail.empty() ? std::nullopt : std::optional(line.detail)}});
    case Kind::not_opened:
    case Kind::failed:
      return tell_failure(line, now);
    case Kind::lost:
      return log_warning(
          "the node lost shards; their task leases are invalid",
          {count, shards, {"action", "check the load of this machine and of the database"}});
    case Kind::closed:
      return log_info("shards are closed", {count, shards, {"reason", line.detail}});
  }
}

}  // namespace detent::server
