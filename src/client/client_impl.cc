#include "client/client_impl.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "detent/internal/saturate.h"
#include "protocol/json/problem.h"
#include "task/limits.h"

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

bool TryPauses::rest(std::optional<milliseconds> told) {
  const milliseconds pause = std::max(next_pause(), told.value_or(milliseconds{0}));
  const MonotonicTime next = clock_.now() + pause;  // "0" must not repeat without a pause
  if (next > give_up_) return false;
  ++pauses_;
  // It does not matter whether the doorbell rang: the next try shows whether the server is back.
  (void)clock_.wait(bell_, next);
  return true;
}

milliseconds TryPauses::next_pause() {
  constexpr int kDoublings = 6;
  const milliseconds most =
      std::min(kLastPause, kFirstPause * (1 << std::min(pauses_, kDoublings)));
  return most / 2 + milliseconds{rng_.below(static_cast<std::uint32_t>(most.count() / 2) + 1)};
}

MonotonicTime give_up_after(milliseconds retry_for, const Clock& clock) noexcept {
  return internal::saturating_add(clock.now(), internal::saturate_to_nanoseconds(retry_for));
}

ClientConnection::ClientConnection(std::unique_ptr<net::HttpClient> prompt,
                                   std::unique_ptr<net::HttpClient> patient, milliseconds retry_for,
                                   Clock& clock)
    : prompt_(std::move(prompt)),
      patient_(std::move(patient)),
      retry_for_(retry_for),
      clock_(clock) {}

Result<std::unique_ptr<ClientConnection>> ClientConnection::make(const std::string& url,
                                                                 const ClientOptions& options,
                                                                 Clock& clock) {
  net::HttpClientOptions http{.headers = {}, .ca_file = options.ca_file};
  if (!options.token.empty()) http.headers.emplace_back("authorization", "Bearer " + options.token);
  ASSIGN_OR_RETURN(auto prompt, net::HttpClient::create(url, options.timeout, http));
  ASSIGN_OR_RETURN(auto patient,
                   net::HttpClient::create(url, options.timeout + kMaxLeaseWait, http));
  return std::make_unique<ClientConnection>(std::move(prompt), std::move(patient),
                                            options.retry_for, clock);
}

ClientResult<void> ClientConnection::call(const Result<ServerCall>& call) {
  if (const Result<void> answered = send(call, {}); !answered) return error_of(answered.error());
  return {};
}

/// Returns ok for a 2xx answer. Any other answer becomes the error that it describes.
Result<void> ClientConnection::send(const Result<ServerCall>& call,
                                    std::optional<MonotonicTime> give_up) {
  status_ = 0;
  sends_ = 0;
  last_answer_.clear();
  if (!call) return call.error();
  const bool is_prompt = call->patience == ServerCall::Patience::prompt;
  net::HttpClient& http = is_prompt ? *prompt_ : *patient_;
  TryPauses pauses(give_up.value_or(give_up_after(retry_for_, clock_)), clock_, rng_);
  while (true) {
    Result<net::HttpResponse> answer = http.send(call->request);
    status_ = answer ? answer->status : 0;
    const bool is_unseen = !answer && !http.may_have_been_seen();
    if (!is_unseen) ++sends_;
    const bool may_repeat = call->repeat == ServerCall::Repeat::always || is_unseen;
    if (is_away(answer) && may_repeat && pauses.rest(retry_after(answer))) continue;
    if (!answer) return std::move(answer).error();
    last_answer_ = std::move(answer->body);
    if (status_ / 100 != 2) return json::parse_problem(status_, last_answer_);
    return ok();
  }
}

ClientError ClientConnection::error_of(const Error& error) const {
  ClientError told = to_client(error);
  told.status = status_;
  told.is_repeated = sends_ > 1;
  if (status_ >= 400) told.problem = last_answer_;
  return told;
}

Result<std::unique_ptr<ClientConnection>> Client::Impl::connect_once() const {
  ClientOptions options = options_;
  options.retry_for = milliseconds{0};
  return ClientConnection::make(url_, options, clock_);
}

std::string Client::Impl::last_answer() {
  const MutexLock lock(mu_);
  return idle_.empty() ? std::string() : idle_.back()->last_answer();
}

Result<std::unique_ptr<ClientConnection>> Client::Impl::take() {
  {
    const MutexLock lock(mu_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return ClientConnection::make(url_, options_, clock_);
}

void Client::Impl::give_back(std::unique_ptr<ClientConnection> connection) {
  const MutexLock lock(mu_);
  idle_.push_back(std::move(connection));
}

Client ClientInternals::over(std::unique_ptr<net::HttpClient> prompt,
                             std::unique_ptr<net::HttpClient> patient) {
  auto impl = std::make_unique<Impl>("", ClientOptions{});
  impl->give_back(std::make_unique<ClientConnection>(std::move(prompt), std::move(patient),
                                                     milliseconds{0}, impl->clock()));
  return Client(std::move(impl));
}

Result<Client> make_client_without_repeats(std::string url, ClientOptions options) {
  options.retry_for = milliseconds{0};
  return to_result(Client::create(std::move(url), std::move(options)));
}

}  // namespace detent
