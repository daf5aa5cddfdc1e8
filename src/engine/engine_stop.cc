// A graceful stop and the start after it: open leases outlive them.
//
// Leases are memory. close() writes each as a key of no queue, beside the marks (engine_far.cc),
// whose name begins with the engine's epoch; the engine after it, which has the next epoch, takes
// them up under their old tokens. Nothing has to be removed for that to be right: an engine looks
// only for what the one just before it has left, and one that crashed has left nothing. The keys
// have expired as they are written, so they are trimmed like all others.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"
#include "task/lifecycle.h"
#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPageLeases = 1'000;

/// What the keys of an epoch's leases begin with. Marks begin with a digit.
std::string prefix_of(std::uint64_t epoch) { return "lease " + std::to_string(epoch) + " "; }

/// A lease as it is in the name of its key: "3-17 1767323045678 worker".
struct KeptLease {
  LeaseToken token;
  WallTime since{};
  std::string_view worker;
};

/// The word at the front of `text`, which is cut off with the space behind it.
std::string_view cut_word(std::string_view& text) {
  const std::size_t size = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return word;
}

std::optional<KeptLease> parse_kept(std::string_view text) {
  const auto token = parse_lease_token(cut_word(text));
  const std::string_view since = cut_word(text);
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(since.data(), since.data() + since.size(), count);
  if (!token || error != std::errc{} || stop != since.data() + since.size()) return std::nullopt;
  return KeptLease{.token = *token, .since = WallTime{milliseconds{count}}, .worker = text};
}

}  // namespace

Result<void> Engine::close() {
  end_waits();
  if (!stopped_by() && options_.keep_leases) {
    for (const auto& [number, lease] : tasks_.leases()) keep(number, lease);
  }
  return commit();
}

void Engine::keep(std::uint64_t number, const Lease& lease) {
  // A connection that holds a lease does not outlive the stop, nor does the deliverer.
  const LoadedTask& task = *lease.task;
  if (lease.run_out != RunOut::fails || task.has_webhook || task.queue->record.settings.webhook) {
    return;
  }
  const LeaseToken token{.epoch = lease.epoch, .number = number};
  std::string key = prefix_of(epoch_) + to_string(token) + " " +
                    std::to_string(lease.since.time_since_epoch().count()) + " ";
  key += lease.worker.substr(0, kMaxKeyBytes - key.size());  // for people only
  const Tick now = time_.now();
  const Tick left = std::max(tasks_.timer_of(task), now) - now;
  const WallTime until = time_.wall_after(milliseconds{static_cast<std::int64_t>(left)});
  records_.keys().put({.queue = kNoQueue,
                       .key = std::move(key),
                       .id = task.id(),
                       .content = static_cast<std::uint64_t>(until.time_since_epoch().count()),
                       .expires_at = time_.wall_now()});
  writer_.must_sync();
}

Result<void> Engine::take_up_leases() {
  const std::string prefix = prefix_of(epoch_ - 1);
  for (std::string after = prefix;;) {
    Result<std::vector<KeyRecord>> records = store_.read_keys(kNoQueue, after, kPageLeases);
    // For what can't be read it is as after a crash: no reason not to start.
    if (!records && records.error().code == ErrorCode::data_loss) return ok();
    if (!records) return std::move(records).error();
    for (const KeyRecord& record : *records) {
      if (!record.key.starts_with(prefix)) return ok();
      TRY(take_up(record, std::string_view(record.key).substr(prefix.size())));
    }
    if (records->size() < kPageLeases) return ok();
    after = records->back().key;
  }
}

/// A task that is not there, or not due by the wall clock of now, is left as it is. So is one whose
/// lease has run out meanwhile: its worker could not say that it was done, so no attempt counts.
Result<void> Engine::take_up(const KeyRecord& record, std::string_view text) {
  const std::optional<KeptLease> kept = parse_kept(text);
  if (!kept || tasks_.is_full_of_leases()) return ok();
  const Result<FoundTask> found = tasks_.find(record.id);
  if (!found) {
    const ErrorCode code = found.error().code;
    if (code == ErrorCode::not_found || code == ErrorCode::data_loss) return ok();
    return found.error();
  }
  if (found->state != TaskState::ready || !found->stored.task.webhook.empty()) return ok();
  const WallTime until{milliseconds{static_cast<std::int64_t>(record.content)}};
  if (until <= time_.wall_now()) return ok();
  LoadedTask& loaded = *load_ready(*found);
  hand_out_.note_number(kept->token.number);
  tasks_.open_lease(kept->token.number,
                    {.task = &loaded,
                     .epoch = kept->token.epoch,
                     .since = kept->since,
                     .worker = std::string(kept->worker)},
                    time_.tick_at(until));
  return ok();
}

}  // namespace detent
