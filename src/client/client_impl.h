// The implementation of Client: a pool of connections, each of which serves one call at a time.
//
// A connection repeats a call while the server is unavailable. If no connection could be made, the
// server has not seen the request, and any call is repeated. After other failures (connection lost,
// time-out, 408, 502, 503, 504), a call is repeated only if running it twice has the same effect as
// once. The wait between two tries is 100 ms, then doubles up to 5 s, minus a random part. A longer
// Retry-After takes precedence.
//
// The worker, the command line and other programs of this repository reach the implementation
// through ClientInternals, for calls and errors that are not in the installed header.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "client/client_values.h"
#include "detent/client.h"
#include "net/http_client/http_client.h"
#include "protocol/json/answer_codec.h"

namespace detent {

/// A request, and how the client makes it.
struct ServerCall {
  /// `always` if running the call twice has the same effect as once.
  enum class Repeat : std::uint8_t { never, always };
  /// A patient call waits up to kMaxLeaseWait longer, because the server may take that long.
  enum class Patience : std::uint8_t { prompt, patient };
  net::HttpRequest request;
  Repeat repeat = Repeat::always;
  Patience patience = Patience::prompt;
};

ServerCall get_call(std::string target);
/// The body is JSON.
ServerCall post_call(std::string target, std::string body = {});
/// Encodes a queue name or a key as one segment of a path (RFC 3986). The name may contain slashes.
std::string percent_encode(std::string_view text);

using Leases = std::span<const std::string>;
/// Errors: those of validate(const LeaseRequest&).
Result<ServerCall> lease_call(const std::string& queue, const client::LeaseOptions& options);
ServerCall complete_call(Leases leases);
ServerCall fail_call(Leases leases, const client::FailOptions& options);
ServerCall extend_call(Leases leases, std::chrono::milliseconds by);
ServerCall release_call(Leases leases, const client::ReleaseOptions& options);

/// The results of a call for many elements. Each result is a value or an error.
template <class T>
using Results = std::vector<ClientResult<T>>;

/// The waits between the tries of a call, while there is time for another try. Thread-compatible.
class TryPauses {
 public:
  /// `clock` and `rng` must outlive it.
  TryPauses(MonotonicTime give_up, Clock& clock, Rng& rng) noexcept
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

  /// Makes a call and reads the body of its answer with `read`, which returns a Result. The last
  /// try starts before `give_up`, or `retry_for` from now if it is not given. Errors: the error in
  /// `call`; those of the server and of `read`.
  template <class Read>
  auto call(const Result<ServerCall>& call, const Read& read,
            std::optional<MonotonicTime> give_up = {})
      -> ClientResult<decltype(as_client(*read(std::string_view())))> {
    if (const Result<void> answered = send(call, give_up); !answered) {
      return error_of(answered.error());
    }
    auto value = read(std::string_view(last_answer_));
    if (!value) return error_of(value.error());
    return as_client(*std::move(value));
  }
  /// Makes a call whose answer has no value.
  ClientResult<void> call(const Result<ServerCall>& call);

  /// Like call(), for many elements: `make(elements)` is the call for these elements, and `read`
  /// returns one result for each. If a shard of a cluster is away, only its elements are
  /// `unavailable`. The call is then repeated for these elements. All tries together take at most
  /// `retry_for`, or the connection's `retry_for` if it is not given.
  template <class E, class Make, class Read>
  auto call_each(std::span<const E> elements, const Make& make, const Read& read,
                 std::optional<std::chrono::milliseconds> retry_for = {}) {
    TryPauses pauses(give_up_after(retry_for.value_or(retry_for_), clock_), clock_, rng_);
    const Result<ServerCall> whole = make(elements);
    auto all = call(whole, read, pauses.give_up());
    if (!all) return all;
    auto& results = *all;
    const bool may_repeat =
        whole->repeat == ServerCall::Repeat::always && results.size() == elements.size();
    for (auto away = away_in(results); may_repeat && !away.empty() && pauses.rest();
         away = away_in(results)) {
      std::vector<E> some;
      for (const std::size_t i : away) some.push_back(elements[i]);
      auto again = call(make(std::span<const E>(some)), read, pauses.give_up());
      // The results of the other elements must be kept.
      if (!again || again->size() != away.size()) break;
      for (std::size_t i = 0; i < away.size(); ++i) {
        results[away[i]] = std::move((*again)[i]);
        mark_repeated(results[away[i]]);
      }
    }
    return all;
  }

  /// The body of the last answer, as the server sent it; "" if the last call got no answer.
  const std::string& last_answer() const noexcept { return last_answer_; }

  /// See HttpClient. Thread-safe.
  void interrupt() noexcept {
    prompt_->interrupt();
    patient_->interrupt();
  }

 private:
  Result<void> send(const Result<ServerCall>& call, std::optional<MonotonicTime> give_up);
  ClientError error_of(const Error& error) const;

  template <class T>
  static void mark_repeated(ClientResult<T>& result) {
    if (result) return;
    ClientError error = result.error();
    error.is_repeated = true;
    result = std::move(error);
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

  const std::unique_ptr<net::HttpClient> prompt_;
  const std::unique_ptr<net::HttpClient> patient_;
  const std::chrono::milliseconds retry_for_;
  Clock& clock_;
  Rng rng_{random_seed()};
  // Of the last call.
  int status_ = 0;  // of its last answer; 0: there was no answer
  int sends_ = 0;   // requests that the server may have seen
  std::string last_answer_;
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
  template <class... Read>
  auto call(const Result<ServerCall>& call, const Read&... read) {
    return over([&](ClientConnection& connection) { return connection.call(call, read...); });
  }
  /// See ClientConnection::call_each.
  template <class E, class Make, class Read>
  auto call_each(std::span<const E> elements, const Make& make, const Read& read,
                 std::optional<std::chrono::milliseconds> retry_for = {}) {
    return over([&](ClientConnection& connection) {
      return connection.call_each(elements, make, read, retry_for);
    });
  }
  /// The call of one of the lease verbs: complete, fail, extend or release.
  using LeaseVerb = std::function<ServerCall(Leases)>;
  /// Returns a status or an error for each lease.
  ClientResult<Results<client::LeaseStatus>> call_leases(
      Leases leases, const LeaseVerb& verb,
      std::optional<std::chrono::milliseconds> retry_for = {}) {
    return call_each(leases, verb, json::parse_lease_results, retry_for);
  }

  /// The body of the answer to the call that ended last, as the server sent it. For callers that
  /// forward the body. Requires: no call runs.
  std::string last_answer() DETENT_EXCLUDES(mu_);

  /// Errors: as ClientConnection::make.
  Result<std::unique_ptr<ClientConnection>> take() DETENT_EXCLUDES(mu_);
  void give_back(std::unique_ptr<ClientConnection> connection) DETENT_EXCLUDES(mu_);

 private:
  template <class F>
  auto over(const F& function) -> std::invoke_result_t<F, ClientConnection&> {
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
  // The connection that was used last is at the end, and is used next.
  std::vector<std::unique_ptr<ClientConnection>> idle_ DETENT_GUARDED_BY(mu_);
};

/// Reaches the implementation of a client.
class ClientInternals {
 public:
  using Impl = Client::Impl;

  static Impl& of(Client& client) noexcept { return *client.impl_; }
  /// A client that uses the caller's connections and does not repeat calls. For tests.
  static Client over(std::unique_ptr<net::HttpClient> prompt,
                     std::unique_ptr<net::HttpClient> patient);
};

/// Makes a client that does not repeat calls, for programs that repeat them themselves or let a
/// person decide. Errors: as Client::create().
Result<Client> make_client_without_repeats(std::string url, ClientOptions options = {});

}  // namespace detent
