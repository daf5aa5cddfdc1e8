#include "tracing/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/log/log.h"

namespace detent {
namespace {

enum class Acceptance : std::uint8_t { accepted, try_again, refused };

/// OTLP names the statuses that allow another try.
Acceptance acceptance_of(const net::CallOutcome& outcome) {
  constexpr int kFirstGood = 200;
  constexpr int kEndOfGood = 300;
  const auto* const answer = std::get_if<net::HttpResponse>(&outcome);
  if (answer == nullptr) return Acceptance::try_again;
  if (answer->status >= kFirstGood && answer->status < kEndOfGood) return Acceptance::accepted;
  for (const int again : {429, 502, 503, 504}) {
    if (answer->status == again) return Acceptance::try_again;
  }
  return Acceptance::refused;
}

std::string problem_of(const net::CallOutcome& outcome) {
  if (const auto* const failure = std::get_if<net::CallFailure>(&outcome)) return failure->message;
  return "the collector answered " + std::to_string(std::get<net::HttpResponse>(outcome).status);
}

}  // namespace

Result<net::HttpUrl> traces_url(const std::string& endpoint) {
  if (endpoint.find('?') != std::string::npos) {
    return Error{ErrorCode::invalid_argument, "must be a URL without a query", "otlp-endpoint"};
  }
  return net::parse_http_url(endpoint + (endpoint.ends_with('/') ? "v1/traces" : "/v1/traces"));
}

Result<std::unique_ptr<SpanExporter>> SpanExporter::start(const std::string& endpoint,
                                                          TracedService service, Clock& clock) {
  ASSIGN_OR_RETURN(net::HttpUrl url, traces_url(endpoint));
  Target target{.url = std::move(url),
                .resolver = std::make_unique<net::SystemResolver>(),
                .caller = nullptr};
  const auto allow_all = [](const net::IpAddress&, std::uint16_t) { return ok(); };
  ASSIGN_OR_RETURN(target.caller, net::HttpCaller::start({.max_idle_connections = 1},
                                                         *target.resolver, allow_all));
  return std::make_unique<SpanExporter>(std::move(target), std::move(service), clock);
}

SpanExporter::SpanExporter(Target target, TracedService service, Clock& clock)
    : service_(std::move(service)),
      url_(std::move(target.url)),
      clock_(clock),
      resolver_(std::move(target.resolver)),
      caller_(std::move(target.caller)),
      thread_([this] { run(); }) {}

SpanExporter::~SpanExporter() {
  {
    const MutexLock lock(mutex_);
    stop_at_ = clock_.now() + kGrace;
  }
  bell_.ring();
}

void SpanExporter::add(Span span) {
  std::size_t size = 0;
  {
    const MutexLock lock(mutex_);
    if (buffer_.size() == kMaxBuffered) {
      ++counts_.dropped;
      return;
    }
    buffer_.push_back(std::move(span));
    size = buffer_.size();
  }
  if (size == 1 || size == kBatch) bell_.ring();
}

SpanCounts SpanExporter::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void SpanExporter::run() {
  while (const auto next = step(clock_.now())) clock_.wait(bell_, *next);
}

std::optional<std::optional<MonotonicTime>> SpanExporter::step(MonotonicTime now) {
  std::string problem;
  bool has_answer = false;
  std::optional<MonotonicTime> stop_at;
  {
    const MutexLock lock(mutex_);
    has_answer = outcome_.has_value();
    if (has_answer && acceptance_of(*outcome_) != Acceptance::accepted) {
      problem = problem_of(*outcome_);
    }
    if (has_answer) take_outcome(now);
    if (batch_.empty()) take_batch(now);
    stop_at = stop_at_;
    if (stop_at && (batch_.empty() || now >= *stop_at)) {
      counts_.dropped += batch_.size() + buffer_.size();
      return std::nullopt;
    }
  }
  if (has_answer) note_acceptance(problem);
  if (!batch_.empty() && !is_sending_ && now >= send_at_) send();
  std::optional<MonotonicTime> next = stop_at;
  const std::optional<MonotonicTime> work = batch_.empty() ? flush_at_ : std::optional(send_at_);
  if (!is_sending_ && work) next = next ? std::min(*next, *work) : work;
  return next;
}

void SpanExporter::take_outcome(MonotonicTime now) {
  is_sending_ = false;
  const Acceptance acceptance = acceptance_of(*outcome_);
  outcome_.reset();
  if (acceptance == Acceptance::try_again) {
    send_at_ = now + retry_;
    retry_ = std::min(2 * retry_, kLongestRetry);
    return;
  }
  (acceptance == Acceptance::accepted ? counts_.sent : counts_.refused) += batch_.size();
  batch_.clear();
  retry_ = kFirstRetry;
}

/// Takes a full batch at once, and a part of a batch after kDelay or at the end.
void SpanExporter::take_batch(MonotonicTime now) {
  if (buffer_.empty()) return flush_at_.reset();
  if (!flush_at_) flush_at_ = now + kDelay;
  if (buffer_.size() < kBatch && now < *flush_at_ && !stop_at_) return;
  const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(std::min(buffer_.size(), kBatch));
  batch_.assign(std::move_iterator(buffer_.begin()), std::move_iterator(end));
  buffer_.erase(buffer_.begin(), end);
  flush_at_.reset();
}

/// Logs only the changes, because a collector that is away refuses every call.
void SpanExporter::note_acceptance(const std::string& problem) {
  if (std::exchange(is_accepted_, problem.empty()) == problem.empty()) return;
  if (problem.empty()) {
    log_info("the collector accepts traces again", {{"endpoint", url_.authority}});
  } else {
    log_warning("the collector does not accept traces; tasks are not affected",
                {{"endpoint", url_.authority},
                 {"cause", problem},
                 {"action", "check the collector; the server tries again by itself"}});
  }
}

void SpanExporter::send() {
  is_sending_ = true;
  net::HttpRequest request{.method = "POST", .target = "", .headers = {}, .body = ""};
  request.headers = {{"content-type", "application/json"}, {"user-agent", "Detent"}};
  request.body = render_otlp(batch_, service_);
  caller_->call(url_, std::move(request), [this](net::CallOutcome outcome) {
    {
      const MutexLock lock(mutex_);
      outcome_ = std::move(outcome);
    }
    bell_.ring();
  });
}

}  // namespace detent
