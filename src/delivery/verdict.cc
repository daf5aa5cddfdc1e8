#include "delivery/verdict.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "delivery/retry_after.h"
#include "task/limits.h"

namespace detent {
namespace {

using net::CallFailure;
using net::CallStep;
using net::HttpResponse;

/// "HTTP 500", and the begin of the body, which is the receiver's: printable ASCII only.
std::string describe(const HttpResponse& answer) {
  std::string text = "HTTP " + std::to_string(answer.status);
  if (answer.body.empty()) return text;
  text += ": ";
  for (const char c : std::string_view(answer.body).substr(0, kToldBodyBytes)) {
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

Verdict fail(DeliveryEnd end, std::string error) {
  return {.verb = Verdict::Verb::fail, .end = end, .error = std::move(error)};
}

Verdict judge_answer(const HttpResponse& answer, WallInstant now) {
  if (answer.status >= 200 && answer.status < 300) return {};
  if (answer.status == 410) {
    return {.verb = Verdict::Verb::bury,
            .end = DeliveryEnd::gone,
            .error = "410 Gone: the receiver wants no more; " + describe(answer)};
  }
  if (answer.status == 429 || answer.status == 503) {
    Verdict verdict = fail(DeliveryEnd::overloaded, describe(answer));
    verdict.delay = parse_retry_after(answer.header("retry-after"), now);
    return verdict;
  }
  const bool is_redirect = answer.status >= 300 && answer.status < 400;
  return fail(DeliveryEnd::refused_by_status,
              is_redirect ? "HTTP " + std::to_string(answer.status) + ": redirects are not followed"
                          : describe(answer));
}

Verdict judge_failure(const CallFailure& failure) {
  if (failure.step == CallStep::filter) return not_allowed(failure.message);
  const bool timed_out = failure.kind == CallFailure::Kind::timed_out;
  return fail(timed_out ? DeliveryEnd::timed_out : DeliveryEnd::not_reached, failure.message);
}

}  // namespace

std::string_view to_string(DeliveryEnd end) noexcept {
  switch (end) {
    case DeliveryEnd::delivered:
      return "delivered";
    case DeliveryEnd::refused_by_status:
      return "status";
    case DeliveryEnd::overloaded:
      return "overloaded";
    case DeliveryEnd::gone:
      return "gone";
    case DeliveryEnd::not_reached:
      return "not_reached";
    case DeliveryEnd::timed_out:
      return "timed_out";
    case DeliveryEnd::not_allowed:
      return "not_allowed";
    case DeliveryEnd::given_back:
      return "given_back";
  }
  return "";
}

Verdict judge(const net::CallOutcome& outcome, WallInstant now) {
  if (const auto* const answer = std::get_if<HttpResponse>(&outcome)) {
    return judge_answer(*answer, now);
  }
  return judge_failure(std::get<CallFailure>(outcome));
}

Verdict not_allowed(std::string error) {
  return {.verb = Verdict::Verb::bury,
          .end = DeliveryEnd::not_allowed,
          .error = "the webhook may not be called: " + std::move(error)};
}

Verdict refused_by_sink(std::string error) {
  for (char& c : error) c = c >= ' ' && c <= '~' ? c : '?';
  error.resize(std::min(error.size(), kMaxErrorBytes));
  return fail(DeliveryEnd::refused_by_status, std::move(error));
}

Verdict given_back(std::chrono::milliseconds delay) {
  return {.verb = Verdict::Verb::release, .end = DeliveryEnd::given_back, .delay = delay};
}

}  // namespace detent
