// The last changes of tasks as text of server-sent events, numbered, and where each reader is.
//
// A change is rendered once, whoever reads it. Its number is its event's id, behind the number of
// this run of the server, so that a reader which comes back says where it was: if all since then is
// kept it goes on there, else it is told that it can't.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "task/task_change.h"

namespace detent::server {

/// Thread-compatible. Invariant: the entries kept are those numbered begin() … end() − 1.
class ChangeLog {
 public:
  static constexpr std::size_t kMaxKept = 10'000;

  struct Entry {
    std::string queue;
    std::string text;          // the whole event
    std::uint64_t missed = 0;  // or else changes, of any queue, that were not told
    bool is_gap = false;       // or else nobody knows what happened here
  };

  /// `run` must differ from that of any other log of this server, before or after.
  explicit ChangeLog(std::uint64_t run) : run_(run) {}

  void add(const TaskChange& change);
  /// So many changes come here that were not told.
  void add_missed(std::uint64_t count);
  /// Nobody knows what happened here.
  void add_gap();
  /// From here on nothing is added for a while: no reader can go on over this place.
  void forget();

  std::uint64_t begin() const noexcept { return end_ - entries_.size(); }
  std::uint64_t end() const noexcept { return end_; }
  const Entry& at(std::uint64_t number) const { return entries_[number - begin()]; }

  std::string id_of(std::uint64_t number) const;
  /// The number after the event of this id; none when not all since then is kept, or it is no id.
  std::optional<std::uint64_t> after(std::string_view id) const noexcept;

 private:
  void keep(Entry entry);

  const std::uint64_t run_;
  std::deque<Entry> entries_;
  std::uint64_t end_ = 1;
};

/// What a client asks for.
struct EventFilter {
  std::string queue;  // "": all
  bool stats = true;
  bool tasks = true;
};

/// Where a client is in the log. Thread-compatible.
class ChangeReader {
 public:
  /// Most changes told in a second; what is more is missed. Nobody could follow it by eye, and
  /// totals are in the stats.
  static constexpr std::size_t kMaxPerSecond = 200;
  /// Of what was kept for one that has come back, most told at once.
  static constexpr std::size_t kMaxAtOnce = 500;

  /// `last_id` is the event that the client had last, or "". Appends how its stream begins.
  ChangeReader(const ChangeLog& log, EventFilter filter, std::string_view last_id,
               std::string& out);

  const EventFilter& filter() const noexcept { return filter_; }
  /// Appends what is new to the client. Changes that were missed are told of when a change is told
  /// or the next second has begun.
  void read(const ChangeLog& log, MonotonicTime now, std::string& out);
  /// Whether it is to read again soon, though nothing new is added.
  bool is_behind(const ChangeLog& log) const noexcept { return next_ < log.end(); }
  /// When it is to read again to tell of what was missed, if something was.
  std::optional<MonotonicTime> tells_missed_at() const noexcept {
    return missed_ == 0 && !has_gap_ ? std::nullopt : std::optional(second_end_);
  }

 private:
  void tell_missed(const ChangeLog& log, std::string& out);

  EventFilter filter_;
  std::uint64_t next_;        // number of the entry to read next
  std::uint64_t live_from_;   // what was kept for it ends here
  std::uint64_t missed_ = 0;  // not told of yet
  bool has_gap_ = false;      // likewise: and nobody knows how many more
  MonotonicTime second_end_{};
  std::size_t told_ = 0;  // in this second
};

/// "event: NAME", the data, and an id unless it is empty; the data must be without line ends.
std::string event_text(std::string_view id, std::string_view name, std::string_view data);

}  // namespace detent::server
