// The thread that delivers due tasks to webhooks and sinks. It leases the tasks from the engine,
// has them called or sent, and reports the results to the engine.
//
// The thread does no I/O and never waits for a call. HttpCaller makes the calls, HostLines chooses
// the next call, and judge() interprets the answer. The deliverer leases more tasks as long as
// there is room for more calls, independently of the lines. So a host that does not answer does not
// delay the tasks of other hosts. Messages for a sink are sent as they come. If a sink does not
// accept messages (SinkLines), its tasks are not leased. While the limit of all calls
// (HostLimits::max_all_calls) is reached, no task is leased, not even for sinks.
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
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "delivery/host_lines.h"
#include "delivery/sink_lines.h"
#include "delivery/verdict.h"
#include "delivery/webhook_signature.h"
#include "delivery/webhook_source.h"
#include "detent/clock.h"
#include "net/http_client/http_caller.h"
#include "sinks/sink.h"
#include "tracing/task_tracer.h"

namespace detent {

struct DeliveryStats {
  std::array<std::uint64_t, kDeliveryEnds> ended{};  // since the start, by DeliveryEnd
  std::uint64_t calls = 0;                           // under way
  std::uint64_t waiting = 0;                         // leased, in the line of a host
  std::map<std::string, SinkStats> sinks = {};       // by name
};

/// A sink is up again, or is not any more, and why.
using SinkTurn = std::function<void(const std::string& name, const Result<void>& state)>;

/// The result of a call to a webhook. `receiver` is the host of the URL, with the port if the URL
/// names one. `cause` is empty if the call was accepted; it has no part of the answer's body.
struct WebhookResult {
  std::string_view receiver;
  DeliveryEnd end = DeliveryEnd::delivered;
  std::string cause;
};
using WebhookCalled = std::function<void(const WebhookResult& result)>;

struct DelivererOptions {
  HostLimits limits = {};
  Sinks sinks = {};
  SinkLimits sink_limits = {};
  /// Runs on the deliverer's thread, or in stop() after that has ended; may be empty.
  SinkTurn on_sink_turn = {};
  /// The same, after each call.
  WebhookCalled on_called = {};
  TaskTracer* tracer = nullptr;  // null: no traces; it must outlive the deliverer
};

/// Thread-safe.
class Deliverer {
 public:
  /// The most tasks in one request to the engine.
  static constexpr std::size_t kMaxTaken = 64;
  /// The pause before the next request, if the source has no task and does not wait.
  static constexpr std::chrono::milliseconds kTakePause{1'000};
  /// A sink has failed if it does not answer for a message within this time.
  static constexpr std::chrono::milliseconds kLongestSend{60'000};

  /// Starts the thread. `clock` must outlive this object. `source` is shared with the callbacks
  /// that the source still runs. `keys` sign for queues without their own keys. If there are no
  /// keys at all, a task is dead immediately.
  Deliverer(std::shared_ptr<WebhookSource> source, std::unique_ptr<net::HttpCaller> caller,
            Clock& clock, WebhookKeys keys, DelivererOptions options = {});
  /// Stops without grace, if stop() has not been called.
  ~Deliverer();
  Deliverer(const Deliverer&) = delete;
  Deliverer& operator=(const Deliverer&) = delete;

  /// Signs by these from now on. Requires: at least one.
  void set_keys(WebhookKeys keys);
  DeliveryStats stats() const;
  /// Leases no more tasks, and gives waiting tasks back. Running calls may end within `grace`.
  /// After that they are cut and given back, so they will be made again. Idempotent. Must not be
  /// called from its own thread.
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
  /// Returns false if the thread must end.
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
  const WebhookCalled on_called_;
  TaskTracer* const tracer_;

  // Synchronises itself.
  const std::shared_ptr<Inbox> inbox_;  // shared with the callbacks that the source still runs

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
  std::size_t takes_ = 0;          // requests without an answer yet; the last of them waits
  std::vector<std::string> held_;  // as that was told
  MonotonicTime asked_at_{};
  MonotonicTime next_take_{};

  Thread thread_;
};

}  // namespace detent
