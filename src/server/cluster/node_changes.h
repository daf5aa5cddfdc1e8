// The task changes of the whole cluster, collected at one node: from its own shards, and from the
// other nodes. Both are in one log, and an entry tells where it happened.
//
// A node with watching clients asks every other node for the changes after the last number that it
// received. The question waits at the other node until there is a change there, and it makes this
// node collect changes for one more minute. A node that was unreachable for a short time therefore
// delivers its changes later. Changes that cannot be delivered are reported as a gap. This happens
// if a node joined, left or restarted, or was unreachable for too long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "net/http_server/http_server.h"
#include "server/watch/change_collector.h"
#include "server/watch/change_source.h"

namespace detent::server {

/// A place among the changes of a node.
struct ChangePlace {
  std::uint64_t run = 0;
  std::uint64_t number = 0;  // of the next change
};

/// Changes that one node reports to another.
struct ToldChanges {
  std::vector<TaskChange> changes = {};  // for each task, its changes are oldest first
  std::uint64_t missed = 0;              // after `changes`
  bool has_gap = false;                  // and an unknown number in addition
};

/// Thread-safe. The methods of ChangeSource are for the reader only.
class NodeChanges final : public ChangeSource {
 public:
  /// The largest number of changes in one answer.
  static constexpr std::size_t kMostTold = 4'096;
  /// How long a question of another node waits.
  static constexpr std::chrono::seconds kLongestQuestion{30};
  /// The pause before a node that did not answer is asked again.
  static constexpr std::chrono::milliseconds kAskAgain{500};

  using Answered = UniqueFunction<void(std::optional<std::string>)>;
  /// Asks the node at an address for its changes after the place `after`. The answer, or no value,
  /// comes once, on any thread. It may never come if this node is stopping.
  using AskNode =
      std::function<void(const std::string& address, const std::string& after, Answered)>;

  /// `clock` must outlive it. `run` must differ from the `run` of every other node and of earlier
  /// processes of this node.
  NodeChanges(AskNode ask, Clock& clock, std::uint64_t run);
  NodeChanges(const NodeChanges&) = delete;
  NodeChanges& operator=(const NodeChanges&) = delete;

  /// See ChangeCollector::new_feed().
  std::shared_ptr<ChangeFeed> new_feed() { return collector_.new_feed(); }
  /// Sets the addresses of the other nodes.
  void set_nodes(const std::vector<std::string>& addresses) DETENT_EXCLUDES(mutex_);
  /// Answers another node with the changes after `after`. This is the place in an earlier answer,
  /// or "". After stop() the answer comes immediately, and has no changes.
  void answer(std::string_view after, const net::Responder& responder) DETENT_EXCLUDES(mutex_);

  ChangeLog& log() noexcept override { return collector_.log(); }
  void watch() override DETENT_EXCLUDES(mutex_);
  void unwatch(MonotonicTime now) override { collector_.unwatch(now); }
  MonotonicTime collect(MonotonicTime now) override DETENT_EXCLUDES(mutex_);
  /// Answers all waiting questions. Sends no further questions.
  void stop() override DETENT_EXCLUDES(mutex_);
  Doorbell& bell() noexcept override { return collector_.bell(); }

 private:
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
    bool is_first = false;  // it has no place yet
    std::optional<ChangePlace> after;
    net::Responder responder;
    MonotonicTime until;
  };
  enum class Ending : std::uint8_t { no, yes };

  MonotonicTime reply(MonotonicTime now, Ending ending);
  std::optional<std::string> reply_to(Question& question, bool may_wait);
  void take_arrived() DETENT_REQUIRES(mutex_);
  void take_told() DETENT_EXCLUDES(mutex_);
  MonotonicTime ask_nodes(MonotonicTime now) DETENT_EXCLUDES(mutex_);
  void ask(const Node& node);
  void answered(std::uint64_t number, const std::optional<std::string>& bytes)
      DETENT_EXCLUDES(mutex_);
  void tell_gap() DETENT_REQUIRES(mutex_);

  // Constant after construction.
  const AskNode ask_;
  Clock& clock_;

  // Used only by the thread of the reader, except new_feed() and bell().
  ChangeCollector collector_;
  std::vector<Question> questions_;  // that wait

  // Guarded by mutex_.
  Mutex mutex_;
  std::vector<Question> arrived_ DETENT_GUARDED_BY(mutex_);  // questions that the reader takes
  std::vector<Node> nodes_ DETENT_GUARDED_BY(mutex_);
  std::uint64_t last_node_ DETENT_GUARDED_BY(mutex_) = 0;
  // What other nodes have told, and gaps. Bounded: a node is asked again after its answer is taken.
  std::vector<ToldChanges> told_ DETENT_GUARDED_BY(mutex_);
  bool is_asking_ DETENT_GUARDED_BY(mutex_) = false;  // for clients of this node
  bool is_stopping_ DETENT_GUARDED_BY(mutex_) = false;
};

}  // namespace detent::server
