// An HttpClient that sends a request again when the server is away: the half of a client's patience
// that needs no knowledge of what is asked.
//
// When no connection could be made the server has not seen the request, and any is repeated; after
// that (connection lost, time-out, 408, 502, 503, 504) only one of which twice is once, as the
// caller says.
// Between the tries it waits 100 ms, then twice as long each time up to 5 s, less a random part, or
// as long as Retry-After says if that is longer.
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

/// Whether doing it twice is doing it once.
enum class Repeat : std::uint8_t { never, always };

/// What the caller says of its next request, and what is known of it afterwards.
struct CallNote {
  Repeat repeat = Repeat::always;
  std::optional<MonotonicTime> give_up = {};  // no try begins after it; none: `retry_for` from now
  int status = 0;                             // of the last answer; 0: there was none
  int sends = 0;                              // that the server may have seen
};

/// The pauses between the tries of a call, while there is time for another one. Thread-compatible.
class Patience {
 public:
  /// `clock` and `rng` must outlive it.
  Patience(MonotonicTime give_up, Clock& clock, Rng& rng) noexcept
      : give_up_(give_up), clock_(clock), rng_(rng) {}

  /// Waits for the next try, at least `told`. False, at once: no try is left.
  bool rest(std::optional<std::chrono::milliseconds> told = {});
  MonotonicTime give_up() const noexcept { return give_up_; }

 private:
  std::chrono::milliseconds next_pause();

  const MonotonicTime give_up_;
  Clock& clock_;
  Rng& rng_;
  Doorbell bell_;  // nobody rings it
  int pauses_ = 0;
};

/// So long from now, or the end of time.
MonotonicTime give_up_after(std::chrono::milliseconds retry_for, const Clock& clock) noexcept;

/// Thread-compatible, but for interrupt().
class RepeatingHttp final : public net::HttpClient {
 public:
  /// `clock` and `note` must outlive it.
  RepeatingHttp(std::unique_ptr<net::HttpClient> http, std::chrono::milliseconds retry_for,
                Clock& clock, CallNote& note)
      : http_(std::move(http)), retry_for_(retry_for), clock_(clock), note_(note) {}

  Result<net::HttpResponse> send(const net::HttpRequest& request) override;
  /// Not repeated.
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
