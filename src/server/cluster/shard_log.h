// Logs what happens to the shards of a node.
//
// If the database stops, all shards of a node fail within a second. A node can have hundreds of
// shards, and a line for each would hide the cause. So events of the same kind are gathered for a
// moment, and have one line with the numbers of the shards. At level debug, each shard has its own
// line with its epoch, without a delay.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log/log_pace.h"
#include "base/mutex.h"
#include "detent/clock.h"
#include "store/lease_table.h"

namespace detent::server {

/// Why a shard closes.
enum class ShardEnd : std::uint8_t {
  moved,       // another node gets it, so that all nodes have their share
  stopping,    // the node stops
  failed,      // its store failed
  not_opened,  // its store cannot be opened
  lost,        // the node did not renew its lease in time, or another node has taken it
};
std::string_view to_string(ShardEnd end) noexcept;

/// Shows the numbers in order, with ranges: "0-3,7".
std::string show_shards(const std::set<ShardNumber>& shards);

/// Thread-safe.
class ShardLog {
 public:
  static constexpr std::chrono::seconds kGather{1};
  /// An idle shard notices later than a busy shard that the database is away.
  static constexpr std::chrono::seconds kGatherFailures{2};
  /// When it looks again whether a failure that was logged a short time ago is worth a line.
  static constexpr std::chrono::seconds kNextLook{5};

  /// `on_next_line` is called when next_line() has become earlier. It must not call this object.
  /// Both must outlive it.
  ShardLog(const Clock& clock, std::function<void()> on_next_line);
  /// Logs everything that has been gathered.
  ~ShardLog();
  ShardLog(const ShardLog&) = delete;
  ShardLog& operator=(const ShardLog&) = delete;

  /// `from`: the node that had the shard before; empty: none, this node, or unknown.
  void serving(const ShardLease& shard, const std::string& from) DETENT_EXCLUDES(mutex_);
  void not_opened(const ShardLease& shard, const std::string& cause) DETENT_EXCLUDES(mutex_);
  void failed(const ShardLease& shard, const std::string& cause) DETENT_EXCLUDES(mutex_);
  void lost(const ShardLease& shard) DETENT_EXCLUDES(mutex_);
  void closed(const ShardLease& shard, ShardEnd end) DETENT_EXCLUDES(mutex_);

  /// When write() has something to log; empty: nothing has been gathered.
  std::optional<MonotonicTime> next_line() const DETENT_EXCLUDES(mutex_);
  /// Logs the events that have been gathered for long enough.
  void write() DETENT_EXCLUDES(mutex_);
  /// Logs all gathered events.
  void write_all() DETENT_EXCLUDES(mutex_);

 private:
  enum class Kind : std::uint8_t { serving, not_opened, failed, lost, closed };
  static bool is_failure(Kind kind) { return kind == Kind::failed || kind == Kind::not_opened; }
  struct Line {
    Kind kind = Kind::serving;
    std::string detail;  // serving: the node before; closed: the reason
    std::string cause;   // of the first shard
    std::set<ShardNumber> shards;
    MonotonicTime due{};
    bool is_held = false;  // the pace allowed no line when it was due
  };
  struct Failure {
    Kind kind{};
    MonotonicTime first{};
    MonotonicTime last{};
    bool is_away = true;  // not served by this node since the last failure
  };

  void gather(Kind kind, ShardNumber shard, std::string detail, const std::string& cause = "")
      DETENT_EXCLUDES(mutex_);
  void note_failure(Kind kind, ShardNumber shard, MonotonicTime now) DETENT_REQUIRES(mutex_);
  bool is_due(Line& line, MonotonicTime now) DETENT_REQUIRES(mutex_);
  void tell(const Line& line, MonotonicTime now) DETENT_REQUIRES(mutex_);
  void tell_failure(const Line& line, MonotonicTime now) DETENT_REQUIRES(mutex_);

  const Clock& clock_;
  const std::function<void()> on_next_line_;
  mutable Mutex mutex_;
  std::vector<Line> lines_ DETENT_GUARDED_BY(mutex_);  // oldest first
  std::map<ShardNumber, Failure> failures_ DETENT_GUARDED_BY(mutex_);
  LogPace failed_pace_ DETENT_GUARDED_BY(mutex_);
  LogPace not_opened_pace_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server
