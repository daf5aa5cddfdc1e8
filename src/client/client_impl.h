// The inside of Client: connections that are lent to one call at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "client/api_client.h"
#include "client/client_values.h"
#include "client/repeating_http.h"
#include "detent/client.h"

namespace detent {

/// What a call goes over. Thread-compatible, but for interrupt().
class ClientConnection {
 public:
  /// `clock` must outlive it. Does not connect yet. Errors: `invalid_argument`, as HttpClient has
  /// it.
  static Result<std::unique_ptr<ClientConnection>> make(const std::string& url,
                                                        const ClientOptions& options, Clock& clock);
  /// On connections of the caller's making, for tests.
  ClientConnection(std::unique_ptr<net::HttpClient> prompt,
                   std::unique_ptr<net::HttpClient> patient, std::chrono::milliseconds retry_for,
                   Clock& clock);

  /// Calls the server by `function(api)`, a Result. Returns what it returned, its error as a
  /// client's.
  template <class F>
  auto call(Repeat repeat, F&& function) {
    using T = typename std::invoke_result_t<F, ApiClient&>::value_type;
    note_ = {.repeat = repeat};
    auto result = function(api_);
    if (!result) return ClientResult<T>(error_of(result.error()));
    if constexpr (std::is_void_v<T>) {
      return ClientResult<void>();
    } else {
      return ClientResult<T>(*std::move(result));
    }
  }

  /// See HttpClient. Thread-safe.
  void interrupt() noexcept {
    prompt_.interrupt();
    patient_.interrupt();
  }

 private:
  ClientError error_of(const Error& error) const;

  CallNote note_;
  net::HttpClient& prompt_;  // both inside api_
  net::HttpClient& patient_;
  ApiClient api_;
};

/// Thread-safe.
class Client::Impl {
 public:
  Impl(std::string url, ClientOptions options)
      : url_(std::move(url)),
        options_(std::move(options)),
        clock_(options_.clock != nullptr ? *options_.clock : system_clock_) {}

  /// One of its own, that repeats nothing.
  Result<std::unique_ptr<ClientConnection>> connect_once() const;
  Clock& clock() const noexcept { return clock_; }

  /// See ClientConnection::call.
  template <class F>
  auto call(Repeat repeat, F&& function) {
    using T = typename std::invoke_result_t<F, ApiClient&>::value_type;
    Result<std::unique_ptr<ClientConnection>> connection = take();
    if (!connection) return ClientResult<T>(to_client(connection.error()));
    ClientResult<T> result = (*connection)->call(repeat, std::forward<F>(function));
    give_back(*std::move(connection));
    return result;
  }

  /// Errors: as ClientConnection::make.
  Result<std::unique_ptr<ClientConnection>> take() DETENT_EXCLUDES(mu_);
  void give_back(std::unique_ptr<ClientConnection> connection) DETENT_EXCLUDES(mu_);

 private:
  // Constant after construction.
  const std::string url_;
  const ClientOptions options_;

  // Synchronise themselves.
  mutable SystemClock system_clock_;
  Clock& clock_;

  Mutex mu_;
  std::vector<std::unique_ptr<ClientConnection>> idle_ DETENT_GUARDED_BY(mu_);
};

}  // namespace detent
