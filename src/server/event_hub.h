// What goes on, for those who look: streams of server-sent events, and the history of the figures.
//
// One thread asks the engine for its figures, takes what is told of its tasks (change_feed.h), and
// sends both to the streams. It never waits for a client: what a stream may hold is bounded by net,
// and what a client is told in a second by ChangeReader. The engine is asked once a second while
// somebody listens, else as often as the history needs; its changes are watched while somebody
// wants them, and for a minute after, so that who comes back in that time has missed nothing.
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
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "server/change_log.h"
#include "server/change_source.h"
#include "server/http_reply.h"
#include "server/stats_history.h"

namespace detent::server {

/// Has the figures asked for: they are given once, on any thread; nothing when they could not be
/// had. False when they cannot be asked for just now: then nothing is given.
using AskFigures = std::function<bool(UniqueFunction<void(std::optional<EngineStats>)>)>;
/// Of one engine, which must outlive it.
AskFigures figures_of(EngineThread& engine);

struct EventHubOptions {
  std::size_t max_streams = 100;
  std::size_t max_streams_of_one = 25;  // of one token, or without tokens of one address
};

/// Whose a stream is.
struct Watcher {
  std::string name;  // streams of one name are counted together
  /// Whether it may still watch; asked at the begin and by check_again(), on the hub's thread.
  std::function<bool()> may_watch = [] { return true; };
};

/// Thread-safe.
class EventHub {
 public:
  static constexpr std::chrono::seconds kStatsPeriod{1};
  static constexpr std::chrono::seconds kHeartbeat{15};
  /// A stream may tell of the figures of so long.
  static constexpr std::chrono::seconds kRecent{10};
  static constexpr std::chrono::minutes kKeptUnwatched{1};
  /// Changes are taken so often at most.
  static constexpr std::chrono::milliseconds kTakePeriod{50};

  /// Starts the thread. Whom `ask` asks, `changes` and `clock` must outlive this; the HTTP server
  /// must be stopped before this is destroyed.
  EventHub(AskFigures ask, ChangeSource& changes, Clock& clock, EventHubOptions options = {});
  /// Of one engine, which is told in `feed` what happens.
  EventHub(EngineThread& engine, ChangeFeed& feed, Clock& clock, EventHubOptions options = {});
  /// Stops, if stop() has not been called.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  /// Answers with a stream of events, those after `last_id` first, if it is not empty. Errors:
  /// unavailable when there are as many streams as may be, in all or of this watcher, or it is
  /// stopping; nothing is answered then.
  Result<void> open(const HttpReply& reply, Watcher watcher, EventFilter filter,
                    std::string last_id) DETENT_EXCLUDES(mutex_);
  /// Ends the streams of those who may watch no more.
  void check_again() DETENT_EXCLUDES(mutex_);
  /// See StatsHistory::points().
  std::vector<json::StatsPoint> history(const StatsHistory::Range& range) const
      DETENT_EXCLUDES(mutex_);
  /// Streams that are open.
  std::size_t streams() const DETENT_EXCLUDES(mutex_);

  /// Ends every stream, and joins. Idempotent; not from its own thread.
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
  /// What has come in for the thread.
  struct News {
    std::vector<Arrival> arrivals;
    std::vector<Number> gone;
    bool must_check = false;
    bool is_stopping = false;
  };
  /// The engine's answer, on its way; owned by this and by the question, which may outlive it.
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
  void take_changes(MonotonicTime now);
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
  std::map<Number, std::string> open_ DETENT_GUARDED_BY(mutex_);  // streams, and whose they are
  Number last_number_ DETENT_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ DETENT_GUARDED_BY(mutex_) = false;
  StatsHistory history_ DETENT_GUARDED_BY(mutex_);

  // Touched only by the thread.
  std::map<Number, Listener> listeners_;
  ChangeLog log_;
  bool is_watching_ = false;
  std::optional<MonotonicTime> unwatch_at_;
  MonotonicTime next_take_{};
  bool must_take_ = false;
  std::deque<StatsSample> recent_;  // kRecent, and one before
  MonotonicTime next_question_{};
  bool is_asked_ = false;

  Thread thread_;
};

}  // namespace detent::server
