#include "client/repeating_http.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "detent/internal/saturate.h"
#include "protocol/json/problem.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLastPause{5'000};

bool is_away(const Result<net::HttpResponse>& answer) {
  const ErrorCode code = answer ? json::code_of_status(answer->status) : answer.error().code;
  return code == ErrorCode::unavailable;
}

/// Reads whole seconds. A date is ignored.
std::optional<milliseconds> retry_after(const Result<net::HttpResponse>& answer) {
  if (!answer) return std::nullopt;
  const std::string_view text = answer->header("retry-after");
  std::uint32_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return seconds{count};
}

}  // namespace

bool Patience::rest(std::optional<milliseconds> told) {
  const milliseconds pause = std::max(next_pause(), told.value_or(milliseconds{0}));
  const MonotonicTime next = clock_.now() + pause;  // "0" must not repeat without a pause
  if (next > give_up_) return false;
  ++pauses_;
  // It does not matter whether the doorbell rang: the next try shows whether the server is back.
  (void)clock_.wait(bell_, next);
  return true;
}

milliseconds Patience::next_pause() {
  constexpr int kDoublings = 6;
  const milliseconds most =
      std::min(kLastPause, kFirstPause * (1 << std::min(pauses_, kDoublings)));
  return most / 2 + milliseconds{rng_.below(static_cast<std::uint32_t>(most.count() / 2) + 1)};
}

MonotonicTime give_up_after(milliseconds retry_for, const Clock& clock) noexcept {
  return internal::saturating_add(clock.now(), internal::saturate_to_nanoseconds(retry_for));
}

Result<net::HttpResponse> RepeatingHttp::send(const net::HttpRequest& request) {
  Patience patience(note_.give_up.value_or(give_up_after(retry_for_, clock_)), clock_, rng_);
  note_.sends = 0;
  while (true) {
    Result<net::HttpResponse> answer = http_->send(request);
    note_.status = answer ? answer->status : 0;
    const bool is_unseen = !answer && !http_->may_have_been_seen();
    if (!is_unseen) ++note_.sends;
    if (!is_away(answer) || (note_.repeat == Repeat::never && !is_unseen)) return answer;
    if (!patience.rest(retry_after(answer))) return answer;
  }
}

}  // namespace detent
