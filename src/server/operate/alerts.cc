#include "server/operate/alerts.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log/log.h"
#include "delivery/address_guard.h"
#include "delivery/webhook_keys.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

constexpr int kFirstGood = 200;
constexpr int kEndOfGood = 300;

/// Returns the error text; empty if the alert was received.
std::string problem_of(const net::CallOutcome& outcome) {
  if (const auto* const failure = std::get_if<net::CallFailure>(&outcome)) return failure->message;
  const int status = std::get<net::HttpResponse>(outcome).status;
  if (status >= kFirstGood && status < kEndOfGood) return "";
  return "the receiver answered " + std::to_string(status);
}

}  // namespace

Result<std::unique_ptr<Alerts>> Alerts::start(const AlertOptions& options, AlertSource source,
                                              Clock& clock) {
  if (options.thresholds.empty()) {
    if (options.url.empty()) return std::unique_ptr<Alerts>();
    return Error{ErrorCode::invalid_argument,
                 "--alert-webhook needs a threshold: --alert-pending, --alert-dead or "
                 "--alert-lateness",
                 "alert-webhook"};
  }
  Way way;
  if (!options.url.empty()) {
    Result<net::HttpUrl> url = net::parse_http_url(options.url);
    if (!url) return with_context("--alert-webhook", std::move(url).error());
    way.url = *std::move(url);
    ASSIGN_OR_RETURN(AddressGuard guard, AddressGuard::parse(options.allow));
    way.keys_file = options.keys_file;
    if (!way.keys_file.empty()) {
      ASSIGN_OR_RETURN(way.keys, load_webhook_keys(way.keys_file));
    }
    way.resolver = std::make_unique<net::SystemResolver>();
    ASSIGN_OR_RETURN(
        way.caller, net::HttpCaller::start({}, *way.resolver,
                                           [guard = std::move(guard)](const net::IpAddress& address,
                                                                      std::uint16_t port) {
                                             return guard.check(address, port);
                                           }));
  }
  return std::make_unique<Alerts>(options.thresholds, std::move(way), std::move(source), clock);
}

Alerts::Alerts(Thresholds thresholds, Way way, AlertSource source, Clock& clock)
    : source_(std::move(source)),
      thresholds_(thresholds),
      clock_(clock),
      url_(std::move(way.url)),
      keys_file_(std::move(way.keys_file)),
      mail_(std::make_shared<Mail>()),
      next_look_(clock.now()),
      resolver_(std::move(way.resolver)),
      caller_(std::move(way.caller)) {
  {
    const MutexLock lock(mail_->mutex);
    mail_->keys = std::move(way.keys);
  }
  thread_ = Thread([this] { run(); });
}

Alerts::~Alerts() {
  {
    const MutexLock lock(mail_->mutex);
    mail_->is_stopping = true;
  }
  mail_->bell.ring();
}

Result<void> Alerts::reload_keys() {
  if (keys_file_.empty()) return ok();
  ASSIGN_OR_RETURN(WebhookKeys keys, load_webhook_keys(keys_file_));
  const MutexLock lock(mail_->mutex);
  mail_->keys = std::move(keys);
  return ok();
}

void Alerts::run() {
  for (;;) {
    std::optional<StatsSample> sample;
    std::optional<net::CallOutcome> outcome;
    WebhookKeys keys;
    {
      const MutexLock lock(mail_->mutex);
      if (mail_->is_stopping) return;
      sample = std::exchange(mail_->sample, std::nullopt);
      if (std::exchange(mail_->is_answered, false)) is_asked_ = false;
      outcome = std::exchange(mail_->outcome, std::nullopt);
      keys = mail_->keys;
    }
    const MonotonicTime now = clock_.now();
    if (sample && watch_) take(*sample);
    if (outcome) take(*outcome, now);
    ask(now);
    const bool may_send = caller_ != nullptr && !outbox_.empty() && !is_sending_;
    if (may_send && now >= send_at_) {
      send(keys);
    } else if (may_send) {
      clock_.wait(mail_->bell, std::min(next_look_, send_at_));
      continue;
    }
    clock_.wait(mail_->bell, next_look_);
  }
}

/// One question at a time.
void Alerts::ask(MonotonicTime now) {
  if (now < next_look_) return;
  next_look_ = now + kLookPeriod;
  if (!source_.is_ours()) return forget();
  if (!watch_) watch_.emplace(thresholds_);
  if (is_asked_) return;
  is_asked_ = source_.ask([mail = mail_, &clock = clock_](std::optional<EngineStats> stats) {
    {
      const MutexLock lock(mail->mutex);
      mail->is_answered = true;
      if (stats) {
        mail->sample = StatsSample{.taken_at = clock.now(),
                                   .at = std::chrono::floor<milliseconds>(clock.wall_now()),
                                   .stats = *std::move(stats)};
      }
    }
    mail->bell.ring();
  });
}

/// Another node sends the alerts from here on. The call that is under way is not cut off.
void Alerts::forget() {
  watch_.reset();
  outbox_.erase(outbox_.begin() + (is_sending_ ? 1 : 0), outbox_.end());
}

void Alerts::take(const StatsSample& sample) {
  epoch_ = sample.stats.epoch;
  for (const Alert& alert : watch_->look(sample)) {
    log_warning("alert", {{"alert", to_string(alert.figure)},
                          {"state", to_string(alert.state)},
                          {"text", text_of(alert)}});
    if (caller_ == nullptr) continue;
    // A waiting alert about the same figure is out of date. The first entry is being sent, so it
    // stays.
    const auto waiting = outbox_.begin() + (is_sending_ ? 1 : 0);
    outbox_.erase(std::remove_if(waiting, outbox_.end(),
                                 [&alert](const Outgoing& outgoing) {
                                   return outgoing.alert.figure == alert.figure;
                                 }),
                  outbox_.end());
    outbox_.push_back(
        {.alert = alert,
         .id = "alert_" + std::to_string(epoch_) + "_" + std::to_string(++last_alert_)});
  }
}

void Alerts::take(const net::CallOutcome& outcome, MonotonicTime now) {
  is_sending_ = false;
  const std::string problem = problem_of(outcome);
  if (problem.empty()) {
    outbox_.pop_front();
    retry_ = kFirstRetry;
    return;
  }
  log_warning("an alert could not be delivered",
              {{"alert", to_string(outbox_.front().alert.figure)},
               {"state", to_string(outbox_.front().alert.state)},
               {"error", problem},
               {"action", "check the receiver; the server tries again by itself"}});
  const AlertFigure figure = outbox_.front().alert.figure;
  const bool is_out_of_date =
      std::any_of(outbox_.begin() + 1, outbox_.end(),
                  [figure](const Outgoing& later) { return later.alert.figure == figure; });
  if (is_out_of_date) outbox_.pop_front();
  send_at_ = now + retry_;
  retry_ = std::min(2 * retry_, kLongestRetry);
}

void Alerts::send(const WebhookKeys& keys) {
  const Outgoing& next = outbox_.front();
  const auto now = std::chrono::floor<std::chrono::seconds>(clock_.wall_now());
  net::HttpRequest request{.method = "POST", .target = "", .headers = {}, .body = ""};
  request.body = render_alert(next.alert);
  request.headers = {
      {"content-type", "application/json"},
      {"user-agent", "Detent"},
      {"webhook-id", next.id},
      {"webhook-timestamp", std::to_string(now.time_since_epoch().count())},
  };
  if (!keys.empty()) {
    request.headers.emplace_back(
        "webhook-signature",
        sign_webhook(keys, {.id = next.id, .sent = now, .body = request.body}));
  }
  is_sending_ = true;
  caller_->call(url_, std::move(request), [mail = mail_](net::CallOutcome outcome) {
    {
      const MutexLock lock(mail->mutex);
      mail->outcome = std::move(outcome);
    }
    mail->bell.ring();
  });
}

}  // namespace detent::server
