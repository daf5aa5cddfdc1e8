// The thread that delivers due webhooks, and what goes to sinks: takes them from the engine, has
// them called or sent, and tells the engine what became of each.
//
// It does no I/O and waits for nobody: the calls are the HttpCaller's, whose turn it is decides
// HostLines, what an answer means judge(). It asks for more as long as there is room for more
// calls, whatever waits in lines: so a host that takes nothing keeps no other's tasks away. What
// goes to a sink is sent as it comes; for a sink that takes nothing, as SinkLines says, nothing is
// asked for. While no call may begin (HostLimits::max_all_calls) nothing is asked for at all, for
// sinks neither.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "delivery/host_lines.h"
#include "delivery/sink_lines.h"
#include "delivery/webhook_signature.h"
#include "delivery/webhook_source.h"
#include "detent/clock.h"
#include "net/http_caller.h"
#include "sinks/sink.h"

namespace detent {

struct DeliveryStats {
  std::array<std::uint64_t, kDeliveryEnds> ended{};  // since the start, by DeliveryEnd
  std::uint64_t calls = 0;                           // under way
  std::uint64_t waiting = 0;                         // leased, in the line of a host
  std::map<std::string, SinkStats> sinks = {};       // by name
};

/// A sink is up again, or is not any more, and why.
using SinkTurn = std::function<void(const std::string& name, const Result<void>& state)>;

struct DelivererOptions {
  HostLimits limits = {};
  Sinks sinks = {};
  SinkLimits sink_limits = {};
  /// Runs on the deliverer's thread, or in stop() after that has ended; may be empty.
  SinkTurn on_sink_turn = {};
};

/// Thread-safe.
class Deliverer {
 public:
  /// Most tasks asked for at once.
  static constexpr std::size_t kMaxTaken = 64;
  /// A source that has nothing and does not wait is asked again after this.
  static constexpr std::chrono::milliseconds kTakePause{1'000};
  /// A sink that has said nothing of a message for so long has failed.
  static constexpr std::chrono::milliseconds kLongestSend{60'000};

  /// Starts the thread. `clock` must outlive this. `source` is owned with what it still runs for
  /// this. `keys` sign where a queue has none of its own; where there are none, either, a
  /// task is dead at once.
  Deliverer(std::shared_ptr<WebhookSource> source, std::unique_ptr<net::HttpCaller> caller,
            Clock& clock, WebhookKeys keys, DelivererOptions options = {});
  /// Stops without grace, if stop() has not been called.
  ~Deliverer();
  Deliverer(const Deliverer&) = delete;
  Deliverer& operator=(const Deliverer&) = delete;

  /// Signs by these from now on. Requires: at least one.
  void set_keys(WebhookKeys keys);
  DeliveryStats stats() const;
  /// Takes no more and gives back what waits. Calls may end within `grace`; those that do not are
  /// cut and given back: they will be made again. Idempotent; not from its own thread.
  void stop(std::chrono::milliseconds grace);

 private:
  struct Ended {
    std::uint64_t number = 0;
    net::CallOutcome outcome;
  };
  /// The same of a sink.
  struct Sent {
    std::uint64_t number = 0;
    Result<void> result;
  };
  struct Events {
    std::vector<std::vector<Delivery>> taken;
    std::vector<Ended> ended;
    std::vector<Sent> sent;
  };
  class Inbox;
  struct Call {
    LeaseToken lease;
    std::string authority;
    MonotonicTime began{};
  };

  /// A message that a sink has.
  struct Send {
    LeaseToken lease;
    std::string sink;
    MonotonicTime began{};
  };

  void run();
  /// Returns false when the thread is to end.
  bool step();
  void admit(Delivery delivery, MonotonicTime now);
  void begin_calls(MonotonicTime now);
  void begin(HostCall next, MonotonicTime now);
  void finish(const Ended& ended, MonotonicTime now);
  void end(LeaseToken lease, Verdict verdict);
  void send(Delivery delivery, const std::string& sink, MonotonicTime now);
  void finish(const Sent& sent, MonotonicTime now);
  void fail_overdue_sends(MonotonicTime now);
  void say_ended_sends();
  void take(MonotonicTime now);
  void note_taken(bool is_empty, MonotonicTime now);
  std::optional<MonotonicTime> next_wakeup(MonotonicTime now) const;
  void note_gauges();
  bool has_keys() const;

  // Constant after construction.
  const std::shared_ptr<WebhookSource> source_;
  Clock& clock_;
  const Sinks sinks_;
  const SinkTurn on_sink_turn_;

  // Synchronises itself.
  const std::shared_ptr<Inbox> inbox_;  // owned by this and by what the source still runs

  Mutex joining_;  // only one of several callers of stop() joins
  mutable Mutex mutex_;
  WebhookKeys keys_ DETENT_GUARDED_BY(mutex_);
  DeliveryStats stats_ DETENT_GUARDED_BY(mutex_);

  // Touched only by the thread, and by stop() after it has ended.
  std::unique_ptr<net::HttpCaller> caller_;
  HostLines lines_;
  SinkLines sink_lines_;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, Send> sends_;                 // the oldest first
  std::vector<std::pair<LeaseToken, Verdict>> unsaid_;  // of sends that have ended
  std::uint64_t last_number_ = 0;
  std::size_t takes_ = 0;          // that have no answer yet; the last is the one that waits
  std::vector<std::string> held_;  // as that was told
  MonotonicTime asked_at_{};
  MonotonicTime next_take_{};

  Thread thread_;
};

}  // namespace detent
