#include "server/operate/delivery_log.h"

#include <utility>

#include "base/log/log.h"

namespace detent::server {
namespace {

/// Stands for the receivers beyond kMostReceivers. No host has a space in its name.
constexpr const char* kOthers = "other receivers";

const char* action_for(DeliveryEnd end) {
  switch (end) {
    case DeliveryEnd::not_reached:
    case DeliveryEnd::timed_out:
      return "check that the receiver runs and that this machine reaches it; failed tasks are "
             "tried again after their backoff";
    case DeliveryEnd::overloaded:
      return "give the receiver more capacity, or limit the rate of the queue; failed tasks are "
             "tried again after their backoff";
    case DeliveryEnd::gone:
      return "schedule no more tasks with this URL; the tasks are dead";
    case DeliveryEnd::not_allowed:
      return "correct the cause, then run `detent redrive QUEUE`; the tasks are dead";
    case DeliveryEnd::refused_by_status:
    case DeliveryEnd::delivered:
    case DeliveryEnd::given_back:
      break;
  }
  return "read the log of the receiver; `detent get ID` shows the last error of a task";
}

}  // namespace

void DeliveryLog::webhook_called(const WebhookResult& result) {
  if (result.end == DeliveryEnd::given_back) return;
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  if (result.end == DeliveryEnd::delivered) return succeeded(result, now);
  failed(result, now);
}

void DeliveryLog::failed(const WebhookResult& result, MonotonicTime now) {
  auto& [name, receiver] = place_of(result.receiver, now);
  // It is not known when one of the others recovers.
  const bool is_new = name == kOthers && now - receiver.last >= LogPace::kPeriod;
  if (is_new) receiver.failed = 0;
  if (receiver.failed == 0) receiver.first = now;
  ++receiver.failed;
  receiver.last = now;
  if (!receiver.pace.is_worth_a_line("", now)) return;
  receiver.is_told = true;
  log_warning("webhook calls to a receiver fail", {{"receiver", name},
                                                   {"cause", result.cause},
                                                   {"failed_calls", receiver.failed},
                                                   {"since", shown_since(receiver.first, now)},
                                                   {"action", action_for(result.end)}});
}

void DeliveryLog::succeeded(const WebhookResult& result, MonotonicTime now) {
  const auto found = receivers_.find(result.receiver);
  if (found == receivers_.end()) return;
  Receiver& receiver = found->second;
  if (receiver.failed == 0 || now - receiver.last < kCalm) return;
  const std::uint64_t failed = std::exchange(receiver.failed, 0);
  if (!std::exchange(receiver.is_told, false)) return;
  log_info("webhook calls to a receiver succeed again",
           {{"receiver", found->first},
            {"failed_calls", failed},
            {"after", shown_since(receiver.first, now)}});
}

DeliveryLog::Receivers::value_type& DeliveryLog::place_of(std::string_view receiver,
                                                          MonotonicTime now) {
  const auto found = receivers_.find(receiver);
  if (found != receivers_.end()) return *found;
  if (receivers_.size() >= kMostReceivers) {
    std::erase_if(receivers_, [now](const auto& entry) {
      const auto silent = now - entry.second.last;
      return silent >= (entry.second.failed == 0 ? LogPace::kPeriod : kForgotten);
    });
  }
  const bool has_place = receivers_.size() < kMostReceivers;
  return *receivers_.try_emplace(has_place ? std::string(receiver) : kOthers).first;
}

void DeliveryLog::sink_turned(const std::string& name, const Result<void>& state) {
  const MutexLock lock(mutex_);
  Sink& sink = sinks_[name];
  if (!state && sink.pace.is_worth_a_line("", clock_.now())) {
    sink.is_told = true;
    log_warning("a sink does not accept tasks; its queues wait",
                {{"sink", name},
                 {"cause", state.error().message},
                 {"action", "check the broker; the server tries again by itself"}});
  } else if (state && std::exchange(sink.is_told, false)) {
    log_info("a sink accepts tasks again", {{"sink", name}});
  }
}

}  // namespace detent::server
