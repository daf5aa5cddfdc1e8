#include "delivery/verdict.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/utf8.h"
#include "delivery/retry_after.h"
#include "task/limits.h"

namespace detent {
namespace {

using net::CallFailure;
using net::CallStep;
using net::HttpResponse;

/// Replaces invalid characters and terminal controls of a text from outside with a question mark.
std::string printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const std::size_t size = utf8_character_size(text);
    // C0, DEL and C1, which is 0xC2 and a byte below 0xA0 in UTF-8.
    const bool is_control = size == 1 ? text[0] < ' ' || text[0] == '\x7f'
                                      : size == 2 && text[0] == '\xc2' && text[1] < '\xa0';
    if (size == 0 || is_control) {
      printable += '?';
    } else {
      printable += text.substr(0, size);
    }
    text.remove_prefix(std::max(size, std::size_t{1}));
  }
  return printable;
}

/// The begin of `text`, at most `most` bytes; a character that would be cut is left out.
std::string_view begin_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t size = most;
  // A character has at most three bytes behind its first.
  while (size > 0 && most - size < 3 && (text[size] & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

/// "HTTP 500", and the begin of the body, which is the receiver's.
std::string describe(const HttpResponse& answer) {
  std::string text = "HTTP " + std::to_string(answer.status);
  if (answer.body.empty()) return text;
  return text + ": " + printable(begin_of(answer.body, kToldBodyBytes));
}

Verdict fail(DeliveryEnd end, std::string error) {
  return {.verb = Verdict::Verb::fail, .end = end, .error = std::move(error)};
}

Verdict judge_answer(const HttpResponse& answer, WallInstant now) {
  if (answer.status >= 200 && answer.status < 300) return {};
  if (answer.status == 410) {
    return {.verb = Verdict::Verb::bury,
            .end = DeliveryEnd::gone,
            .error =
                "410 Gone: the receiver accepts no more webhooks at this URL; " + describe(answer)};
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

std::string cause_of(const net::CallOutcome& outcome) {
  const auto* const answer = std::get_if<HttpResponse>(&outcome);
  if (answer != nullptr) return "HTTP " + std::to_string(answer->status);
  return std::get<CallFailure>(outcome).message;
}

Verdict not_allowed(std::string error) {
  return {.verb = Verdict::Verb::bury,
          .end = DeliveryEnd::not_allowed,
          .error = "the webhook may not be called: " + std::move(error)};
}

Verdict refused_by_sink(std::string error) {
  return fail(DeliveryEnd::refused_by_status, printable(begin_of(error, kMaxErrorBytes)));
}

Verdict given_back(std::chrono::milliseconds delay) {
  return {.verb = Verdict::Verb::release, .end = DeliveryEnd::given_back, .delay = delay};
}

}  // namespace detent
