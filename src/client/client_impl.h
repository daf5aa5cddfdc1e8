// The implementation of Client: a pool of connections, each of which serves one call at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "client/api_client.h"
#include "client/client_values.h"
#include "client/repeating_http.h"
#include "detent/client.h"

namespace detent {

/// The results of a call for many elements. Each result is a value or an error.
template <class T>
using Results = std::vector<ClientResult<T>>;

/// The connection of one call. Thread-compatible, except interrupt().
class ClientConnection {
 public:
  /// Does not connect yet. `clock` must outlive it. Errors: `invalid_argument`, as in
  /// HttpClient::create().
  static Result<std::unique_ptr<ClientConnection>> make(const std::string& url,
                                                        const ClientOptions& options, Clock& clock);
  /// Uses the caller's connections. For tests.
  ClientConnection(std::unique_ptr<net::HttpClient> prompt,
                   std::unique_ptr<net::HttpClient> patient, std::chrono::milliseconds retry_for,
                   Clock& clock);

  /// Calls the server with `function(api)`, which returns a Result. Returns that result; an error
  /// becomes an error of the client. `give_up` is CallNote::give_up.
  template <class F>
  auto call(Repeat repeat, F&& function, std::optional<MonotonicTime> give_up = {}) {
    using T = typename std::invoke_result_t<F, ApiClient&>::value_type;
    note_ = {.repeat = repeat, .give_up = give_up};
    auto result = function(api_);
    if (!result) return ClientResult<T>(error_of(result.error()));
    if constexpr (std::is_void_v<T>) {
      return ClientResult<void>();
    } else {
      return ClientResult<T>(*std::move(result));
    }
  }

  /// Like call(), for many elements: `function(api, elements)` returns one result for each element.
  /// If a shard of a cluster is away, only its elements are `unavailable`. The call is then
  /// repeated for these elements. All tries together take at most `retry_for`, or the connection's
  /// `retry_for` if it is not given.
  template <class E, class F>
  auto call_each(Repeat repeat, std::span<const E> elements, const F& function,
                 std::optional<std::chrono::milliseconds> retry_for = {}) {
    using Each = std::invoke_result_t<F, ApiClient&, std::span<const E>>;
    using T = typename Each::value_type::value_type::value_type;
    Patience patience(give_up_after(retry_for.value_or(retry_for_), clock_), clock_, rng_);
    auto first = call(
        repeat, [&](ApiClient& api) { return function(api, elements); }, patience.give_up());
    if (!first) return ClientResult<Results<T>>(first.error());
    Results<T> results;
    for (auto& result : first.value()) results.push_back(to_client_result(std::move(result)));
    const bool may_repeat = repeat == Repeat::always && results.size() == elements.size();
    for (auto away = away_in(results); may_repeat && !away.empty() && patience.rest();
         away = away_in(results)) {
      std::vector<E> some;
      for (const std::size_t i : away) some.push_back(elements[i]);
      auto again = call(
          repeat, [&](ApiClient& api) { return function(api, std::span<const E>(some)); },
          patience.give_up());
      // The results of the other elements must be kept.
      if (!again || again.value().size() != away.size()) break;
      for (std::size_t i = 0; i < away.size(); ++i) {
        results[away[i]] = to_client_result(std::move(again.value()[i]), IsRepeated::yes);
      }
    }
    return ClientResult<Results<T>>(std::move(results));
  }

  /// See HttpClient. Thread-safe.
  void interrupt() noexcept {
    prompt_.interrupt();
    patient_.interrupt();
  }

 private:
  enum class IsRepeated : bool { no, yes };

  ClientError error_of(const Error& error) const;

  template <class T>
  static ClientResult<T> to_client_result(Result<T> result,
                                          IsRepeated is_repeated = IsRepeated::no) {
    if (result) return ClientResult<T>(*std::move(result));
    ClientError error = to_client(result.error());
    error.is_repeated = is_repeated == IsRepeated::yes;
    return ClientResult<T>(std::move(error));
  }

  template <class T>
  static std::vector<std::size_t> away_in(const Results<T>& results) {
    std::vector<std::size_t> away;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool is_away = !results[i] && results[i].error().code == ClientError::Code::unavailable;
      if (is_away) away.push_back(i);
    }
    return away;
  }

  const std::chrono::milliseconds retry_for_;
  Clock& clock_;
  Rng rng_{random_seed()};
  CallNote note_;
  net::HttpClient& prompt_;  // prompt_ and patient_ are owned by api_
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

  /// Opens a separate connection that does not repeat calls.
  Result<std::unique_ptr<ClientConnection>> connect_once() const;
  Clock& clock() const noexcept { return clock_; }

  /// See ClientConnection::call.
  template <class F>
  auto call(Repeat repeat, F&& function) {
    return over([&](ClientConnection& connection) {
      return connection.call(repeat, std::forward<F>(function));
    });
  }
  /// See ClientConnection::call_each.
  template <class E, class F>
  auto call_each(Repeat repeat, std::span<const E> elements, const F& function,
                 std::optional<std::chrono::milliseconds> retry_for = {}) {
    return over([&](ClientConnection& connection) {
      return connection.call_each(repeat, elements, function, retry_for);
    });
  }

  /// Errors: as ClientConnection::make.
  Result<std::unique_ptr<ClientConnection>> take() DETENT_EXCLUDES(mu_);
  void give_back(std::unique_ptr<ClientConnection> connection) DETENT_EXCLUDES(mu_);

 private:
  template <class F>
  auto over(F&& function) -> std::invoke_result_t<F, ClientConnection&> {
    Result<std::unique_ptr<ClientConnection>> connection = take();
    if (!connection) return to_client(connection.error());
    auto result = function(**connection);
    give_back(*std::move(connection));
    return result;
  }

  // Constant after construction.
  const std::string url_;
  const ClientOptions options_;

  // These synchronise themselves.
  mutable SystemClock system_clock_;
  Clock& clock_;

  Mutex mu_;
  std::vector<std::unique_ptr<ClientConnection>> idle_ DETENT_GUARDED_BY(mu_);
};

}  // namespace detent
