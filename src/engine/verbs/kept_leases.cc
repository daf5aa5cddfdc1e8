#include "engine/verbs/kept_leases.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "detent/check.h"
#include "task/lifecycle.h"
#include "task/limits.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kPageLeases = 1'000;

/// Prefix of the key of a lease. The key of a mark begins with a digit.
constexpr std::string_view kLease = "lease ";
/// The key of the note. Its content is the epoch of the engine that took leases over last.
constexpr const char* kTakenUp = "leases taken up";

/// The word at the front of `text`, which is cut off with the space behind it.
std::string_view cut_word(std::string_view& text) {
  const std::size_t size = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return word;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

struct KeptLeases::Kept {
  std::uint64_t kept_by = 0;  // the epoch of the engine that wrote the key
  LeaseToken token;
  WallTime since{};
  std::string_view worker;

  /// Parses the name of a key behind kLease: "2 1-17 1767323045678 worker".
  static std::optional<Kept> parse(std::string_view text);
};

std::optional<KeptLeases::Kept> KeptLeases::Kept::parse(std::string_view text) {
  const auto kept_by = parse_number<std::uint64_t>(cut_word(text));
  const auto token = parse_lease_token(cut_word(text));
  const auto since = parse_number<std::int64_t>(cut_word(text));
  if (!kept_by || !token || !since) return std::nullopt;
  return Kept{.kept_by = *kept_by,
              .token = *token,
              .since = WallTime{milliseconds{*since}},
              .worker = text};
}

void KeptLeases::keep() {
  for (const auto& [number, lease] : parts_.tasks.leases()) keep(number, lease);
}

void KeptLeases::keep(std::uint64_t number, const Lease& lease) {
  // Leases that end with their connection end at the stop, and so do the leases of the deliverer.
  const LoadedTask& task = *lease.task;
  if (lease.run_out != RunOut::fails || task.has_webhook || task.queue->record.settings.webhook) {
    return;
  }
  const LeaseToken token{.epoch = lease.epoch, .number = number};
  std::string key = std::string(kLease) + std::to_string(parts_.epoch) + " " + to_string(token) +
                    " " + std::to_string(lease.since.time_since_epoch().count()) + " ";
  key += lease.worker.substr(0, kMaxKeyBytes - key.size());  // for people only
  DETENT_CHECK(task.state == TaskState::leased && task.lease == number);
  const Tick now = parts_.time.now();
  const Tick left = std::max(parts_.tasks.timers().tick_of(task), now) - now;
  const WallTime until = parts_.time.wall_after(milliseconds{static_cast<std::int64_t>(left)});
  parts_.records.keys().put(
      {.queue = kNoQueue,
       .key = std::move(key),
       .id = task.id(),
       .content = static_cast<std::uint64_t>(until.time_since_epoch().count()),
       .expires_at = parts_.time.wall_now()});
  parts_.writer.must_sync();
}

Result<void> KeptLeases::take_up() {
  KeyRecord note{
      .queue = kNoQueue, .key = kTakenUp, .id = {}, .content = parts_.epoch, .expires_at = {}};
  Result<void> taken = take_up_written(note);
  // A damaged lease is lost, as after a crash. The engine can start without it.
  if (!taken && taken.error().code != ErrorCode::data_loss) return taken;
  if (taken && !note.expires_at) return ok();  // no leases were written
  // The note must be trimmed after the leases. Their expiry may be later than now, if the clock was
  // put back since.
  note.expires_at = std::max(note.expires_at.value_or(WallTime{}), parts_.time.wall_now());
  parts_.records.keys().put(std::move(note));
  return ok();
}

/// Takes over the written leases that are not void. Sets the expiry of `note` to the latest expiry
/// of all written leases. Leaves it empty if there are none.
Result<void> KeptLeases::take_up_written(KeyRecord& note) {
  const Result<std::optional<KeyRecord>> before = parts_.store.find_key(kNoQueue, kTakenUp);
  if (!before && before.error().code != ErrorCode::data_loss) return before.error();
  // An engine that writes leases has already handled the leases of all earlier epochs. So only the
  // newest epoch counts.
  std::uint64_t newest = 0;
  TRY(visit_written([&](const Kept& kept, const KeyRecord* record) -> Result<void> {
    newest = std::max(newest, kept.kept_by);
    note.expires_at =
        std::max(note.expires_at, record ? record->expires_at : parts_.time.wall_now());
    return ok();
  }));
  // If the note cannot be read, an earlier engine may have taken these leases over.
  if (!before || (*before && newest < (*before)->content)) return ok();
  return visit_written([&](const Kept& kept, const KeyRecord* record) -> Result<void> {
    if (kept.kept_by != newest) return ok();
    if (record != nullptr) return take_up(kept, *record);
    parts_.news.count(&TaskCounters::quarantined);
    return ok();
  });
}

/// Calls `visit` with each written lease and its record. The record is null if it is damaged.
template <class Visit>
Result<void> KeptLeases::visit_written(Visit visit) {
  const auto visit_name = [&visit](std::string_view name, const KeyRecord* record) -> Result<void> {
    if (!name.starts_with(kLease)) return ok();
    const auto kept = Kept::parse(name.substr(kLease.size()));
    return kept ? visit(*kept, record) : ok();
  };
  for (std::optional<std::string> after(kLease); after && after->starts_with(kLease);) {
    ASSIGN_OR_RETURN(KeyPage page, parts_.store.read_keys(kNoQueue, *after, kPageLeases));
    for (const KeyRecord& record : page.records) TRY(visit_name(record.key, &record));
    for (const std::string& name : page.damaged) TRY(visit_name(name, nullptr));
    after = std::move(page.read_to);
  }
  return ok();
}

/// Opens one written lease again. Does nothing if the task does not exist or is not ready. Does
/// nothing if the lease expired during the stop: its worker could not report the end in this time,
/// so no attempt counts.
Result<void> KeptLeases::take_up(const Kept& kept, const KeyRecord& record) {
  if (parts_.tasks.is_full_of_leases()) return ok();
  const Result<FoundTask> found = parts_.tasks.find(record.id);
  if (!found) {
    const ErrorCode code = found.error().code;
    if (code == ErrorCode::not_found || code == ErrorCode::data_loss) return ok();
    return found.error();
  }
  if (found->state != TaskState::ready || !found->stored.task.webhook.empty()) return ok();
  WallTime until{milliseconds{static_cast<std::int64_t>(record.content)}};
  const WallTime now = parts_.time.wall_now();
  // The key expired at the instant when it was written. If this instant is in the future, the clock
  // was put back since.
  const WallTime written = record.expires_at.value_or(now);
  if (written > now) until -= written - now;
  if (until <= now) return ok();
  LoadedTask& loaded = *parts_.transitions.load_ready(*found);
  parts_.hand_out.note_number(kept.token.number);
  parts_.tasks.open_lease(kept.token.number,
                          {.task = &loaded,
                           .epoch = kept.token.epoch,
                           .since = kept.since,
                           .worker = std::string(kept.worker),
                           .is_told = true},
                          parts_.time.tick_at(until));
  return ok();
}

/// If the epochs are consecutive, no other engine had the store in between. So no other engine has
/// leased the tasks.
void KeptLeases::take_over(const EngineParts& failed) {
  if (!parts_.options.keep_leases || parts_.epoch != failed.epoch + 1) return;
  for (HeldLease& held : failed.tasks.held_leases()) {
    if (failed.hand_out.is_told(held.number, held.lease)) take_over(held, failed.time);
  }
  // The failed commit may not have stored the ends of these leases, and workers repeat their
  // requests. If a task has several such leases, the last was valid. The deliverer does not repeat
  // requests from before that commit.
  const std::vector<HeldLease>& ended = failed.tasks.ended_leases();
  // clang 14 cannot compile std::views::reverse. NOLINTNEXTLINE(modernize-loop-convert)
  for (auto held = ended.rbegin(); held != ended.rend(); ++held) {
    const bool is_told = failed.hand_out.is_told(held->number, held->lease);
    if (is_told && !held->is_delivery) take_over(*held, failed.time);
  }
}

/// Opens the lease again if the task can be read and has not changed since it was leased.
void KeptLeases::take_over(HeldLease held, const EngineTime& time) {
  const MonotonicTime::duration left = time.when(held.until) - parts_.clock.now();
  if (left <= MonotonicTime::duration{0} || parts_.tasks.is_full_of_leases()) return;
  if (parts_.tasks.leases().contains(held.number)) return;
  const Result<FoundTask> found = parts_.tasks.find(held.task);
  const bool is_unchanged =
      found && found->state == TaskState::ready && found->stored.task.attempts == held.attempts;
  if (!is_unchanged) return;
  held.lease.task = parts_.transitions.load_ready(*found);
  held.lease.is_told = true;
  parts_.hand_out.note_number(held.number);
  parts_.tasks.open_lease(held.number, std::move(held.lease),
                          parts_.time.tick_after(std::chrono::ceil<milliseconds>(left)));
}

}  // namespace detent
