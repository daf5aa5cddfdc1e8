#include "delivery/deliverer.h"

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "delivery/sink_message.h"
#include "delivery/webhook_request.h"
#include "detent/check.h"
#include "task/sink_name.h"

namespace detent {
namespace {

HostHealth health_of(DeliveryEnd end) {
  switch (end) {
    case DeliveryEnd::delivered:
      return HostHealth::well;
    case DeliveryEnd::overloaded:
    case DeliveryEnd::not_reached:
    case DeliveryEnd::timed_out:
      return HostHealth::struggling;
    case DeliveryEnd::refused_by_status:
    case DeliveryEnd::gone:
    case DeliveryEnd::not_allowed:
    case DeliveryEnd::given_back:
      return HostHealth::unknown;
  }
  return HostHealth::unknown;
}

/// The status of the answer, if there is one.
std::optional<int> status_of(const net::CallOutcome& outcome) {
  const auto* const answer = std::get_if<net::HttpResponse>(&outcome);
  return answer != nullptr ? std::optional(answer->status) : std::nullopt;
}

/// The kind of failure of a message; empty if it was delivered.
std::string error_of(SendEnd end) {
  switch (end) {
    case SendEnd::delivered:
      return "";
    case SendEnd::refused:
      return "refused";
    case SendEnd::failed:
      break;
  }
  return "failed";
}

/// The keys of the queue, or `own` if the queue has no keys.
Result<WebhookKeys> keys_for(const Delivery& delivery, const WebhookKeys& own) {
  if (delivery.keys.empty()) return own;
  WebhookKeys keys;
  for (const std::string& text : delivery.keys) {
    ASSIGN_OR_RETURN(WebhookKey key, WebhookKey::parse(text));
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

/// Events from other threads for the deliverer's thread. Thread-safe.
class Deliverer::Inbox {
 public:
  /// Returns the deliveries if the inbox is closed.
  std::vector<Delivery> put(std::vector<Delivery> taken) {
    {
      const MutexLock lock(mutex_);
      if (is_closed_) return taken;
      events_.taken.push_back(std::move(taken));
    }
    bell_.ring();
    return {};
  }
  void put(Ended ended) {
    {
      const MutexLock lock(mutex_);
      events_.ended.push_back(std::move(ended));
    }
    bell_.ring();
  }
  void put(Sent sent) {
    {
      const MutexLock lock(mutex_);
      events_.sent.push_back(std::move(sent));
    }
    bell_.ring();
  }
  void stop(MonotonicTime until) {
    {
      const MutexLock lock(mutex_);
      if (stop_at_) return;
      stop_at_ = until;
    }
    bell_.ring();
  }

  /// When calls are cut; empty unless the deliverer is stopping.
  std::optional<MonotonicTime> stop_at() const {
    const MutexLock lock(mutex_);
    return stop_at_;
  }
  Events take() {
    const MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }
  /// The same, for the last time.
  Events close() {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    return std::exchange(events_, {});
  }
  Doorbell& bell() noexcept { return bell_; }

 private:
  Doorbell bell_;
  mutable Mutex mutex_;
  Events events_ DETENT_GUARDED_BY(mutex_);
  std::optional<MonotonicTime> stop_at_ DETENT_GUARDED_BY(mutex_);
  bool is_closed_ DETENT_GUARDED_BY(mutex_) = false;
};

Deliverer::Deliverer(std::shared_ptr<WebhookSource> source, std::unique_ptr<net::HttpCaller> caller,
                     Clock& clock, WebhookKeys keys, DelivererOptions options)
    : source_(std::move(source)),
      clock_(clock),
      sinks_(std::move(options.sinks)),
      on_sink_turn_(std::move(options.on_sink_turn)),
      on_called_(std::move(options.on_called)),
      tracer_(options.tracer),
      inbox_(std::make_shared<Inbox>()),
      keys_(std::move(keys)),
      caller_(std::move(caller)),
      lines_(options.limits, random_seed()),
      sink_lines_(sinks_, options.sink_limits, random_seed()),
      thread_([this] { run(); }) {}

Deliverer::~Deliverer() { stop(std::chrono::milliseconds{0}); }

void Deliverer::set_keys(WebhookKeys keys) {
  DETENT_CHECK(!keys.empty());
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
}

bool Deliverer::has_keys() const {
  const MutexLock lock(mutex_);
  return !keys_.empty();
}

DeliveryStats Deliverer::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

void Deliverer::stop(std::chrono::milliseconds grace) {
  inbox_->stop(clock_.now() + grace);
  const MutexLock lock(joining_);
  thread_.join();
  if (caller_ == nullptr) return;  // another call did the rest
  caller_.reset();
  // Calls that ended while the thread was ending still count. The rest is given back.
  const Events last = inbox_->close();
  for (const Ended& ended : last.ended) finish(ended, clock_.now());
  for (const Sent& sent : last.sent) finish(sent, clock_.now());
  say_ended_sends();
  for (const auto& [number, call] : calls_) end(call.lease, given_back({}));
  calls_.clear();
  for (const auto& [number, sent] : sends_) source_->end(sent.lease, given_back({}));
  sends_.clear();
  for (const std::vector<Delivery>& taken : last.taken) {
    for (const Delivery& delivery : taken) end(delivery.leased.lease, given_back({}));
  }
}

void Deliverer::run() {
  while (step()) clock_.wait(inbox_->bell(), next_wakeup(clock_.now()));
}

bool Deliverer::step() {
  const MonotonicTime now = clock_.now();
  Events events = inbox_->take();
  for (const Ended& ended : events.ended) finish(ended, now);
  for (const Sent& sent : events.sent) finish(sent, now);
  fail_overdue_sends(now);
  for (std::vector<Delivery>& taken : events.taken) {
    note_taken(taken.empty(), now);
    for (Delivery& delivery : taken) admit(std::move(delivery), now);
  }
  const auto stop_at = inbox_->stop_at();
  if (stop_at) {
    for (const HostCall& call : lines_.take_all()) end(call.delivery.leased.lease, given_back({}));
  }
  for (auto& [call, delay] : lines_.take_overdue(now)) {
    end(call.delivery.leased.lease, given_back(delay));
  }
  begin_calls(now);
  if (!stop_at) take(now);
  say_ended_sends();
  note_gauges();
  const bool is_idle = calls_.empty() && sends_.empty();
  return !stop_at || (!is_idle && now < *stop_at);
}

void Deliverer::admit(Delivery delivery, MonotonicTime now) {
  const LeaseToken lease = delivery.leased.lease;
  if (const std::string sink(sink_of(delivery.url)); !sink.empty()) {
    if (sinks_.contains(sink)) return send(std::move(delivery), sink, now);
    return end(lease, not_allowed("there is no sink " + sink + ": name it in the file of --sinks"));
  }
  Result<net::HttpUrl> url = net::parse_http_url(delivery.url);
  if (!url) return end(lease, not_allowed(url.error().message));
  if (delivery.keys.empty() && !has_keys()) {
    const std::string cause =
        "there is no key to sign it: start the server with --webhook-keys, or give the queue its "
        "own keys";
    if (on_called_) on_called_({url->authority, DeliveryEnd::not_allowed, cause});
    return end(lease, not_allowed(cause));
  }
  HostCall call{.delivery = std::move(delivery), .url = *std::move(url)};
  if (const auto delay = lines_.admit(call, now)) return end(lease, given_back(*delay));
  begin_calls(now);
}

void Deliverer::begin_calls(MonotonicTime now) {
  while (std::optional<HostCall> next = lines_.next(now)) begin(*std::move(next), now);
}

void Deliverer::begin(HostCall next, MonotonicTime now) {
  const auto sent = std::chrono::floor<std::chrono::seconds>(clock_.wall_now());
  const LeasedTask& leased = next.delivery.leased;
  net::HttpRequest request;
  {
    const MutexLock lock(mutex_);
    const Result<WebhookKeys> keys = keys_for(next.delivery, keys_);
    // The engine lets no other keys in.
    DETENT_CHECK(keys.has_value());
    request = make_webhook_request(leased, *keys, sent);
  }
  const std::uint64_t number = ++last_number_;
  calls_.emplace(number, Call{leased.lease, next.url.authority, now});
  caller_->call(std::move(next.url), std::move(request),
                [inbox = inbox_, number](net::CallOutcome outcome) {
                  inbox->put(Ended{number, std::move(outcome)});
                });
}

void Deliverer::finish(const Ended& ended, MonotonicTime now) {
  const auto found = calls_.find(ended.number);
  DETENT_CHECK(found != calls_.end());
  const Call call = std::move(found->second);
  calls_.erase(found);
  Verdict verdict = judge(ended.outcome, clock_.wall_now());
  lines_.finish(call.authority, health_of(verdict.end), call.began, now);
  if (on_called_) {
    const bool is_delivered = verdict.end == DeliveryEnd::delivered;
    on_called_({call.authority, verdict.end, is_delivered ? "" : cause_of(ended.outcome)});
  }
  if (tracer_ != nullptr) {
    const bool is_delivered = verdict.end == DeliveryEnd::delivered;
    tracer_->delivered(call.lease,
                       {.began = call.began,
                        .receiver = call.authority,
                        .status = status_of(ended.outcome),
                        .error = is_delivered ? "" : std::string(to_string(verdict.end))});
  }
  end(call.lease, std::move(verdict));
}

void Deliverer::end(LeaseToken lease, Verdict verdict) {
  {
    const MutexLock lock(mutex_);
    ++stats_.ended[static_cast<std::size_t>(verdict.end)];
  }
  source_->end(lease, std::move(verdict));
}

void Deliverer::send(Delivery delivery, const std::string& sink, MonotonicTime now) {
  const std::uint64_t number = ++last_number_;
  sends_.emplace(number, Send{delivery.leased.lease, sink, now});
  sink_lines_.begin(sink);
  sinks_.at(sink)->send(make_sink_message(std::move(delivery.leased)),
                        [inbox = inbox_, number](Result<void> result) {
                          inbox->put(Sent{number, std::move(result)});
                        });
}

void Deliverer::finish(const Sent& sent, MonotonicTime now) {
  const auto found = sends_.find(sent.number);
  if (found == sends_.end()) return;  // its time was over
  const Send send = std::move(found->second);
  sends_.erase(found);
  SendEnd end = SendEnd::delivered;
  Verdict verdict;
  if (!sent.result) {
    const bool is_down = sent.result.error().code == ErrorCode::unavailable;
    end = is_down ? SendEnd::failed : SendEnd::refused;
    // A broker that is down is no fault of the task's: it waits, and has its attempts still.
    verdict = is_down ? given_back({}) : refused_by_sink(sent.result.error().message);
  }
  if (tracer_ != nullptr) {
    tracer_->delivered(send.lease, {.began = send.began,
                                    .receiver = std::string(kSinkScheme) + send.sink,
                                    .error = error_of(end)});
  }
  unsaid_.emplace_back(send.lease, std::move(verdict));
  const bool has_turned = sink_lines_.finish(send.sink, end, now);
  if (has_turned && on_sink_turn_) on_sink_turn_(send.sink, sent.result);
}

/// Runs after take(), which tells the engine which sinks are held. Otherwise the waiting call would
/// immediately get the tasks that a failed sink has just given back.
void Deliverer::say_ended_sends() {
  for (auto& [lease, verdict] : std::exchange(unsaid_, {})) source_->end(lease, std::move(verdict));
}

void Deliverer::fail_overdue_sends(MonotonicTime now) {
  while (!sends_.empty() && now - sends_.begin()->second.began >= kLongestSend) {
    const Error error{ErrorCode::unavailable, "the broker has not answered for 60 s", ""};
    finish(Sent{sends_.begin()->first, error}, now);
  }
}

/// Asks again, too, when other sinks are held than it was told: the call that waits ends then.
void Deliverer::take(MonotonicTime now) {
  const std::size_t room = std::min(lines_.room(), kMaxTaken);
  std::vector<std::string> held = sink_lines_.held(now);
  const bool is_told = takes_ > 0 && held == held_;
  if (is_told || room == 0 || (takes_ == 0 && now < next_take_)) return;
  ++takes_;
  held_ = held;
  asked_at_ = now;
  source_->take(room, std::move(held),
                [inbox = inbox_, source = source_](std::vector<Delivery> taken) {
                  for (const Delivery& late : inbox->put(std::move(taken))) {
                    source->end(late.leased.lease, given_back({}));
                  }
                });
}

void Deliverer::note_taken(bool is_empty, MonotonicTime now) {
  --takes_;
  if (takes_ > 0) return;  // one that the next has ended
  if (is_empty && now - asked_at_ < kTakePause) next_take_ = now + kTakePause;
}

std::optional<MonotonicTime> Deliverer::next_wakeup(MonotonicTime now) const {
  std::optional<MonotonicTime> next = lines_.next_wakeup(now);
  const auto consider = [&next](MonotonicTime time) { next = next ? std::min(*next, time) : time; };
  if (const auto stop_at = inbox_->stop_at()) {
    consider(*stop_at);
  } else if (takes_ == 0 && lines_.room() > 0) {
    consider(next_take_);
  }
  if (const auto trial = sink_lines_.next_wakeup(now)) consider(*trial);
  if (!sends_.empty()) consider(sends_.begin()->second.began + kLongestSend);
  return next;
}

void Deliverer::note_gauges() {
  const MutexLock lock(mutex_);
  stats_.calls = lines_.calls();
  stats_.waiting = lines_.waiting();
  stats_.sinks = sink_lines_.stats();
}

}  // namespace detent
