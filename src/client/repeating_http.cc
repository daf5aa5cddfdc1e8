#include "client/repeating_http.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "detent/internal/saturate.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLastPause{5'000};
constexpr int kUnavailable = 503;

bool is_away(const Result<net::HttpResponse>& answer) {
  return answer ? answer->status == kUnavailable : answer.error().code == ErrorCode::unavailable;
}

/// Whole seconds; a date is not read.
std::optional<milliseconds> retry_after(const net::HttpResponse& answer) {
  const std::string_view text = answer.header("retry-after");
  std::uint32_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return seconds{count};
}

}  // namespace

Result<net::HttpResponse> RepeatingHttp::send(const net::HttpRequest& request) {
  const MonotonicTime give_up =
      internal::saturating_add(clock_.now(), internal::saturate_to_nanoseconds(retry_for_));
  note_.sends = 0;
  for (int tries = 1;; ++tries) {
    Result<net::HttpResponse> answer = http_->send(request);
    note_.status = answer ? answer->status : 0;
    const bool is_unseen = !answer && !http_->may_have_been_seen();
    if (!is_unseen) ++note_.sends;
    if (!is_away(answer) || (note_.repeat == Repeat::never && !is_unseen)) return answer;
    const MonotonicTime next = clock_.now() + next_pause(answer, tries);
    if (next > give_up) return answer;
    (void)clock_.wait(bell_, next);
  }
}

milliseconds RepeatingHttp::next_pause(const Result<net::HttpResponse>& answer, int tries) {
  constexpr int kDoublings = 6;
  const milliseconds most =
      std::min(kLastPause, kFirstPause * (1 << std::min(tries - 1, kDoublings)));
  const milliseconds own =
      most / 2 + milliseconds{rng_.below(static_cast<std::uint32_t>(most.count() / 2) + 1)};
  const auto told = answer ? retry_after(*answer) : std::nullopt;
  return std::max(own, told.value_or(milliseconds{0}));  // "0" must not repeat without a pause
}

}  // namespace detent
