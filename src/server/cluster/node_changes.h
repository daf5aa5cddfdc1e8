// The task changes of the whole cluster, collected at one node: from its own shards, and from the
// other nodes.
//
// Each node keeps the latest numbered changes of its own shards while another node or one of its
// own clients wants them, and for one more minute. A node with watching clients asks every other
// node for the changes after the last number that it received. The question waits at the other node
// until there is a change. A node that was unreachable for a short time therefore delivers its
// changes later. Changes that cannot be delivered are reported as a gap. This happens if a node
// joined, left or restarted, or was unreachable for too long.
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
#include "server/watch/change_source.h"

namespace detent::server {

/// Thread-safe. The methods of ChangeSource are for the reader only.
class NodeChanges final : public ChangeSource {
 public:
  /// The largest number of own changes that are kept, that wait to be taken, and that are reported
  /// in one batch.
  static constexpr std::size_t kMostKept = 10'000;
  static constexpr std::size_t kMostWaiting = 4'096;
  /// The shortest time between two collections of changes from the shards.
  static constexpr std::chrono::milliseconds kTakePeriod{50};
  /// How long a question of another node waits, and how long it keeps this node collecting changes.
  static constexpr std::chrono::seconds kLongestQuestion{30};
  static constexpr std::chrono::minutes kKeptUnasked{1};
  /// The pause before a node that did not answer is asked again.
  static constexpr std::chrono::milliseconds kAskAgain{500};

  using Answered = UniqueFunction<void(std::optional<std::string>)>;
  /// Asks the node at an address for its changes after the place `after`. The answer, or no value,
  /// comes once, on any thread. It may never come if this node is stopping.
  using AskNode =
      std::function<void(const std::string& address, const std::string& after, Answered)>;

  /// Starts the thread. `clock` must outlive it. `run` must differ from the `run` of every other
  /// node and of earlier processes of this node.
  NodeChanges(AskNode ask, Clock& clock, std::uint64_t run);
  /// Stops, if stop() has not been called.
  ~NodeChanges() override;
  NodeChanges(const NodeChanges&) = delete;
  NodeChanges& operator=(const NodeChanges&) = delete;

  /// Makes the feed for the engine of a shard of this node. Owned by this and by the owner of the
  /// engine, who releases it after the engine has ended.
  std::shared_ptr<ChangeFeed> new_feed() DETENT_EXCLUDES(mutex_);
  /// Sets the addresses of the other nodes.
  void set_nodes(const std::vector<std::string>& addresses) DETENT_EXCLUDES(mutex_);
  /// Answers another node with the changes after `after`. This is the place in an earlier answer,
  /// or "".
  void answer(std::string_view after, const net::Responder& responder) DETENT_EXCLUDES(mutex_);
  /// Answers all waiting questions and joins the thread. Idempotent. It sends no further questions
  /// and answers new questions immediately.
  void stop() DETENT_EXCLUDES(mutex_);

  void watch() override DETENT_EXCLUDES(mutex_);
  void unwatch() override DETENT_EXCLUDES(mutex_);
  Taken take() override DETENT_EXCLUDES(mutex_);
  Doorbell& bell() noexcept override { return watchers_bell_; }

 private:
  /// A change of this node, or a count of missed changes.
  struct Entry {
    TaskChange change;
    std::uint64_t missed = 0;
  };
  /// Another node.
  struct Node {
    std::string address;
    std::uint64_t number = 0;  // unique among nodes and watches
    std::string after = {};    // where to continue; "": no place yet
    bool is_asked = false;
    bool is_late = false;  // true: changes before its next answer may be missed
    MonotonicTime next_question{};
  };
  /// A question of another node.
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

  // These members synchronize themselves.
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
