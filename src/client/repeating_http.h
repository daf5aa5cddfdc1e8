// An HttpClient that repeats a request while the server is unavailable. It needs no knowledge of
// the request's meaning.
//
// If no connection could be made, the server has not seen the request, and any request is repeated.
// After other failures (connection lost, time-out, 408, 502, 503, 504), a request is repeated only
// if the caller says that running it twice has the same effect as once. The wait between two tries
// is 100 ms, then doubles up to 5 s, minus a random part. A longer Retry-After takes precedence.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "net/http_client.h"

namespace detent {

/// Whether a call may be repeated: `always` if running it twice has the same effect as once.
enum class Repeat : std::uint8_t { never, always };

/// The caller's options for its next request, and the outcome afterwards.
struct CallNote {
  Repeat repeat = Repeat::always;
  std::optional<MonotonicTime> give_up = {};  // the latest start of a try; no value: `retry_for`
                                              // from now
  int status = 0;                             // of the last answer; 0: there was no answer
  int sends = 0;                              // requests that the server may have seen
};

/// The waits between the tries of a call, while there is time for another try. Thread-compatible.
class Patience {
 public:
  /// `clock` and `rng` must outlive it.
  Patience(MonotonicTime give_up, Clock& clock, Rng& rng) noexcept
      : give_up_(give_up), clock_(clock), rng_(rng) {}

  /// Waits for the next try, at least for `told`. Returns false immediately if no try is left.
  bool rest(std::optional<std::chrono::milliseconds> told = {});
  MonotonicTime give_up() const noexcept { return give_up_; }

 private:
  std::chrono::milliseconds next_pause();

  const MonotonicTime give_up_;
  Clock& clock_;
  Rng& rng_;
  Doorbell bell_;  // never rung; used only to wait
  int pauses_ = 0;
};

/// The time `retry_for` from now, but at most the end of time.
MonotonicTime give_up_after(std::chrono::milliseconds retry_for, const Clock& clock) noexcept;

/// Thread-compatible, except interrupt().
class RepeatingHttp final : public net::HttpClient {
 public:
  /// `clock` and `note` must outlive it.
  RepeatingHttp(std::unique_ptr<net::HttpClient> http, std::chrono::milliseconds retry_for,
                Clock& clock, CallNote& note)
      : http_(std::move(http)), retry_for_(retry_for), clock_(clock), note_(note) {}

  Result<net::HttpResponse> send(const net::HttpRequest& request) override;
  /// This function does not repeat the requests.
  Result<std::vector<net::HttpResponse>> send_all(
      const std::vector<net::HttpRequest>& requests) override {
    return http_->send_all(requests);
  }
  bool may_have_been_seen() const noexcept override { return http_->may_have_been_seen(); }
  void interrupt() noexcept override { http_->interrupt(); }

 private:
  const std::unique_ptr<net::HttpClient> http_;
  const std::chrono::milliseconds retry_for_;
  Clock& clock_;
  CallNote& note_;
  Rng rng_{random_seed()};
};

}  // namespace detent
