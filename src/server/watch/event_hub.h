// Live information for watching clients: streams of server-sent events, and the history of the
// figures.
//
// One thread asks the engine for its figures, collects the changes of tasks (change_source.h), and
// sends both to the streams. The thread never waits for a client: net limits the buffer of a
// stream, and ChangeReader limits the changes per second. While a client listens, the engine is
// asked once per second. Otherwise it is asked as often as the history needs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server/http_server.h"
#include "server/http/http_reply.h"
#include "server/operate/ask_figures.h"
#include "server/operate/stats_history.h"
#include "server/watch/change_log.h"
#include "server/watch/change_source.h"

namespace detent::server {

struct EventHubOptions {
  std::size_t max_streams = 100;
  std::size_t max_streams_of_one = 25;  // of one token, or without tokens of one address
};

/// The client of a stream.
struct Watcher {
  std::string name;  // streams of one name are counted together
  /// Returns true if the client may still watch. Called at the start and by check_again(), on the
  /// hub's thread.
  std::function<bool()> may_watch = [] { return true; };
};

/// Thread-safe.
class EventHub {
 public:
  static constexpr std::chrono::seconds kStatsPeriod{1};
  static constexpr std::chrono::seconds kHeartbeat{15};
  /// The longest period of figures that a stream can start with.
  static constexpr std::chrono::seconds kRecent{10};

  /// Starts the thread. The target of `ask`, `changes` and `clock` must outlive this. The HTTP
  /// server must be stopped before this is destroyed.
  EventHub(AskFigures ask, ChangeSource& changes, Clock& clock, EventHubOptions options = {});
  /// The hub of one engine, which reports its changes to `feed`.
  EventHub(EngineThread& engine, ChangeFeed& feed, Clock& clock, EventHubOptions options = {});
  /// Stops, if stop() has not been called.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  /// Answers with a stream of events. If `last_id` is not empty, the stream starts with the events
  /// after it. Errors: unavailable if the limit of streams is reached, in total or for this
  /// watcher, or if the hub is stopping. On an error no answer is sent.
  Result<void> open(const HttpReply& reply, Watcher watcher, EventFilter filter,
                    std::string last_id) DETENT_EXCLUDES(mutex_);
  /// Ends the streams of clients that have lost their permission.
  void check_again() DETENT_EXCLUDES(mutex_);
  /// See StatsHistory::points().
  std::vector<json::StatsPoint> history(const HistoryRange& range) const DETENT_EXCLUDES(mutex_);
  /// The number of open streams.
  std::size_t streams() const DETENT_EXCLUDES(mutex_);

  /// Ends every stream, and refuses new streams. Changes are still collected for other nodes.
  void end_streams() DETENT_EXCLUDES(mutex_);
  /// Ends every stream and joins the thread. Idempotent. Do not call it from its own thread.
  void stop() DETENT_EXCLUDES(mutex_);

 private:
  using Number = std::uint64_t;  // of a stream
  struct Arrival {
    Number number = 0;
    net::ResponseStream stream;
    std::function<bool()> may_watch;
    EventFilter filter;
    std::string last_id;
  };
  struct Listener {
    net::ResponseStream stream;
    std::function<bool()> may_watch;
    ChangeReader reader;
    MonotonicTime sent_at{};
  };
  /// The input for the thread.
  struct News {
    std::vector<Arrival> arrivals;
    std::vector<Number> gone;
    bool must_check = false;
    bool is_ending = false;
    bool is_stopping = false;
  };
  /// The pending answer of the engine. Owned by this and by the request, which may outlive this.
  struct Figures {
    Mutex mutex;
    std::optional<StatsSample> sample DETENT_GUARDED_BY(mutex);
    bool is_answered DETENT_GUARDED_BY(mutex) = false;  // without a sample: in vain
  };

  void run();
  News take_news() DETENT_EXCLUDES(mutex_);
  Result<Number> count_in(const std::string& name) DETENT_EXCLUDES(mutex_);
  void count_out(Number number) DETENT_EXCLUDES(mutex_);
  void begin(Arrival arrival);
  void end_those_who_may_not();
  void ask_for_figures(MonotonicTime now);
  void take_figures(MonotonicTime now) DETENT_EXCLUDES(mutex_);
  void end_all();
  void watch_or_not(MonotonicTime now);
  void tell_changes(MonotonicTime now);
  void send(Listener& listener, const std::string& text, MonotonicTime now);
  MonotonicTime next_wakeup(MonotonicTime now) const;
  bool has_listeners_to_stats() const;

  EventHub(AskFigures ask, std::unique_ptr<ChangeSource> own, ChangeSource* changes, Clock& clock,
           EventHubOptions options);

  // Constant after construction.
  const AskFigures ask_;
  const std::unique_ptr<ChangeSource> own_changes_;  // null: they are another's
  ChangeSource& changes_;
  Clock& clock_;
  const EventHubOptions options_;
  const std::shared_ptr<Figures> figures_;

  // Guarded by mutex_.
  Mutex joining_;  // only one of several callers of stop() joins
  mutable Mutex mutex_;
  News news_ DETENT_GUARDED_BY(mutex_);
  std::map<Number, std::string> open_ DETENT_GUARDED_BY(mutex_);  // the streams and their watchers
  Number last_number_ DETENT_GUARDED_BY(mutex_) = 0;
  bool is_ending_ DETENT_GUARDED_BY(mutex_) = false;  // no new streams
  bool is_stopping_ DETENT_GUARDED_BY(mutex_) = false;
  StatsHistory history_ DETENT_GUARDED_BY(mutex_);

  // Used only by the thread.
  std::map<Number, Listener> listeners_;
  bool is_watching_ = false;  // a client wants changes
  MonotonicTime next_collection_{};
  std::deque<StatsSample> recent_;  // kRecent, and one before
  MonotonicTime next_question_{};
  bool is_asked_ = false;

  Thread thread_;
};

}  // namespace detent::server
