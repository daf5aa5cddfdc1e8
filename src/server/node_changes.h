// The changes of tasks of a whole cluster, at one of its nodes: what its own shards tell, and what
// the other nodes tell of theirs.
//
// Each node keeps the last changes of its own shards, numbered, while another node or a client of
// its own wants them, and for a minute after. Who watches asks every other node for what comes
// after the number it had last; such a question waits until there is something. So a node that does
// not answer for a while is caught up with, and what cannot be is told as a gap: a node that left
// or came, one that began anew, one that was away for too long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "net/http_server.h"
#include "server/change_source.h"

namespace detent::server {

/// Thread-safe; ChangeSource's methods are for the one that watches.
class NodeChanges final : public ChangeSource {
 public:
  /// Most changes of this node's that are kept, that wait to be taken, and that are told at once.
  static constexpr std::size_t kMostKept = 10'000;
  static constexpr std::size_t kMostWaiting = 4'096;
  /// Changes are taken from the shards so often at most.
  static constexpr std::chrono::milliseconds kTakePeriod{50};
  /// How long another node's question waits, and how long its asking keeps changes.
  static constexpr std::chrono::seconds kLongestQuestion{30};
  static constexpr std::chrono::minutes kKeptUnasked{1};
  /// A node that did not answer is asked again after so long.
  static constexpr std::chrono::milliseconds kAskAgain{500};

  using Answered = UniqueFunction<void(std::optional<std::string>)>;
  /// Asks the node at an address what comes `after`; its answer, or nothing, comes once, on any
  /// thread, or never when this node is about to end.
  using AskNode =
      std::function<void(const std::string& address, const std::string& after, Answered)>;

  /// Starts the thread. `clock` must outlive it. `run` differs from that of any other node, and of
  /// this one before.
  NodeChanges(AskNode ask, Clock& clock, std::uint64_t run);
  /// Stops, if stop() has not been called.
  ~NodeChanges() override;
  NodeChanges(const NodeChanges&) = delete;
  NodeChanges& operator=(const NodeChanges&) = delete;

  /// For the engine of a shard of this node. Owned by this and by whoever has the engine, who lets
  /// go of it after the engine's end.
  std::shared_ptr<ChangeFeed> new_feed() DETENT_EXCLUDES(mutex_);
  /// Which other nodes there are, by their addresses.
  void set_nodes(const std::vector<std::string>& addresses) DETENT_EXCLUDES(mutex_);
  /// Answers another node what comes here after the place that it had of an answer before, or "".
  void answer(std::string_view after, const net::Responder& responder) DETENT_EXCLUDES(mutex_);
  /// Answers what waits, and joins. Idempotent; asks nobody any more, and answers at once.
  void stop() DETENT_EXCLUDES(mutex_);

  void watch() override DETENT_EXCLUDES(mutex_);
  void unwatch() override DETENT_EXCLUDES(mutex_);
  Taken take() override DETENT_EXCLUDES(mutex_);
  Doorbell& bell() noexcept override { return watchers_bell_; }

 private:
  /// A change of this node's, or so many that were not told.
  struct Entry {
    TaskChange change;
    std::uint64_t missed = 0;
  };
  /// Another node.
  struct Node {
    std::string address;
    std::uint64_t number = 0;  // of no other, nor of this one in another watch
    std::string after = {};    // the place to go on; "": none yet
    bool is_asked = false;
    bool is_late = false;  // what it did before its next answer may not be told
    MonotonicTime next_question{};
  };
  /// Of another node.
  struct Question {
    std::string after;
    net::Responder responder;
    MonotonicTime until;
  };
  struct Reply {
    net::Responder responder;
    std::string bytes;
  };

  void run();
  MonotonicTime step(MonotonicTime now) DETENT_EXCLUDES(mutex_);
  bool is_wanted(MonotonicTime now) const DETENT_REQUIRES(mutex_);
  void take_feeds() DETENT_REQUIRES(mutex_);
  void keep(Entry entry) DETENT_REQUIRES(mutex_);
  std::vector<Reply> replies(MonotonicTime now) DETENT_REQUIRES(mutex_);
  std::optional<std::string> reply_to(const Question& question, MonotonicTime now)
      DETENT_REQUIRES(mutex_);
  std::vector<Node> questions(MonotonicTime now) DETENT_REQUIRES(mutex_);
  void ask(const Node& node);
  void answered(std::uint64_t number, const std::optional<std::string>& bytes)
      DETENT_EXCLUDES(mutex_);
  void tell(TaskChange change) DETENT_REQUIRES(mutex_);
  void tell_gap() DETENT_REQUIRES(mutex_);
  void forget() DETENT_REQUIRES(mutex_);

  // Constant after construction.
  const AskNode ask_;
  Clock& clock_;
  const std::uint64_t run_;

  // Synchronise themselves.
  Doorbell bell_;  // of the thread
  Doorbell watchers_bell_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  Mutex mutex_;
  std::vector<std::shared_ptr<ChangeFeed>> feeds_ DETENT_GUARDED_BY(mutex_);
  std::vector<Node> nodes_ DETENT_GUARDED_BY(mutex_);
  std::vector<Question> questions_ DETENT_GUARDED_BY(mutex_);
  std::deque<Entry> kept_ DETENT_GUARDED_BY(mutex_);  // those numbered end_ − size … end_ − 1
  std::uint64_t end_ DETENT_GUARDED_BY(mutex_) = 1;
  std::optional<MonotonicTime> asked_until_ DETENT_GUARDED_BY(mutex_);  // keeps changes until then
  bool are_fed_ DETENT_GUARDED_BY(mutex_) = false;                      // the feeds are watched
  bool is_watched_ DETENT_GUARDED_BY(mutex_) = false;
  std::uint64_t last_node_ DETENT_GUARDED_BY(mutex_) = 0;
  Taken waiting_ DETENT_GUARDED_BY(mutex_);
  bool is_stopping_ DETENT_GUARDED_BY(mutex_) = false;

  Thread thread_;
};

}  // namespace detent::server
