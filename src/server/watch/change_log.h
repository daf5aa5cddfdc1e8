// The latest changes of tasks, numbered, and the position of each stream of server-sent events that
// reads them. On a node of a cluster, the questions of other nodes read the same log.
//
// A change is rendered once for all streams. Its event id is the number of this run of the server,
// followed by the number of the change. A reader that reconnects sends its last id. If the log
// still has all later changes, the reader continues from that event. Otherwise the log tells the
// reader that it missed changes.
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

  /// Where a change happened: at an engine of this server, or at another node.
  enum class Origin : std::uint8_t { here, elsewhere };
  /// A change, a number of missed changes, or a gap.
  struct Entry {
    Origin origin = Origin::here;
    TaskChange change = {};
    std::uint64_t missed = 0;  // changes, of any queue, that were not told
    bool is_gap = false;       // an unknown number of changes is missing here

    bool is_change() const noexcept { return missed == 0 && !is_gap; }
  };

  /// `run` must differ from the `run` of every other log of this server, earlier or later.
  explicit ChangeLog(std::uint64_t run) : run_(run) {}

  void add(TaskChange change, Origin origin = Origin::here);
  /// Adds a note that this number of changes was not reported.
  void add_missed(std::uint64_t count, Origin origin = Origin::here);
  /// Adds a note that an unknown number of changes is missing.
  void add_gap();
  /// Call this if no changes will be added for a while: no reader can continue across this point.
  void forget();

  std::uint64_t run() const noexcept { return run_; }
  std::uint64_t begin() const noexcept { return end_ - entries_.size(); }
  std::uint64_t end() const noexcept { return end_; }
  const Entry& at(std::uint64_t number) const { return entries_[number - begin()].entry; }
  /// The event of a change for streams, rendered at the first call.
  const std::string& text_of(std::uint64_t number);

  std::string id_of(std::uint64_t number) const;
  /// Returns the number that follows the event with this id. Returns no value if the id is invalid
  /// or if the log no longer has all changes since that event.
  std::optional<std::uint64_t> after(std::string_view id) const noexcept;

 private:
  struct Kept {
    Entry entry;
    std::string text = {};  // "" until a stream needs it
  };
  void keep(Entry entry);

  const std::uint64_t run_;
  std::deque<Kept> entries_;
  std::uint64_t end_ = 1;
};

/// The events that a client asks for.
struct EventFilter {
  std::string queue;  // "": all
  bool stats = true;
  bool tasks = true;
};

/// The position of one client in the log. Thread-compatible.
class ChangeReader {
 public:
  /// The largest number of changes sent per second; further changes count as missed. A person
  /// cannot read more, and the stats have the totals.
  static constexpr std::size_t kMaxPerSecond = 200;
  /// The largest number of kept changes that a reconnected client gets in one read.
  static constexpr std::size_t kMaxAtOnce = 500;

  /// `last_id` is the last event that the client received, or "". Appends the beginning of the
  /// stream.
  ChangeReader(const ChangeLog& log, EventFilter filter, std::string_view last_id,
               std::string& out);

  const EventFilter& filter() const noexcept { return filter_; }
  /// Appends the new changes for the client. Missed changes are reported together with the next
  /// change, or when the next second begins.
  void read(ChangeLog& log, MonotonicTime now, std::string& out);
  /// Returns true if the reader must read again soon, even if no change is added.
  bool is_behind(const ChangeLog& log) const noexcept { return next_ < log.end(); }
  /// Returns the time of the next read that reports missed changes, if there are any.
  std::optional<MonotonicTime> tells_missed_at() const noexcept {
    return missed_ == 0 && !has_gap_ ? std::nullopt : std::optional(second_end_);
  }

 private:
  void tell_missed(const ChangeLog& log, std::string& out);

  EventFilter filter_;
  std::uint64_t next_;        // number of the entry to read next
  std::uint64_t live_from_;   // the kept changes for a reconnected client end here
  std::uint64_t missed_ = 0;  // not told of yet
  bool has_gap_ = false;      // the same, with an unknown number of changes
  MonotonicTime second_end_{};
  std::size_t told_ = 0;  // in this second
};

/// Returns the text of an event: "event: NAME", the data, and the id unless it is empty. The data
/// must not contain line ends.
std::string event_text(std::string_view id, std::string_view name, std::string_view data);

}  // namespace detent::server
