// Shared parts for tests of outbound calls: a resolver with scripted answers, a listener that
// counts connections, and a caller that waits for answers. Tests only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "net/http_client/http_caller.h"
#include "net/testing/http_server_fixture.h"

namespace detent::net {

/// Answers immediately, on the calling thread. A name can have several answers in sequence; the
/// last answer repeats. A name without an answer is never answered, and "unknown" fails.
/// Thread-safe.
class ScriptedResolver final : public HostResolver {
 public:
  void add(const std::string& host, std::vector<std::string> addresses) {
    const MutexLock lock(mutex_);
    answers_[host].push_back(std::move(addresses));
  }
  int asked() const {
    const MutexLock lock(mutex_);
    return asked_;
  }

  void resolve(const std::string& host, Resolved done) override {
    if (host == "unknown") return done(Error{ErrorCode::not_found, "no such name", ""});
    std::vector<IpAddress> found;
    {
      const MutexLock lock(mutex_);
      ++asked_;
      const auto answers = answers_.find(host);
      if (answers == answers_.end()) return silent_.push_back(std::move(done));
      for (const auto& text : answers->second.front()) found.push_back(*IpAddress::parse(text));
      if (answers->second.size() > 1) answers->second.erase(answers->second.begin());
    }
    done(std::move(found));
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::vector<std::vector<std::string>>> answers_ DETENT_GUARDED_BY(mutex_);
  std::vector<Resolved> silent_ DETENT_GUARDED_BY(mutex_);
  int asked_ DETENT_GUARDED_BY(mutex_) = 0;
};

/// Listens on 127.0.0.1 and ::1, on one port, and serves no connection. When the test asks, it
/// counts and closes the connections.
class CountingListener {
 public:
  CountingListener() {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_at(v4_, reinterpret_cast<sockaddr*>(&v4), sizeof v4);
    socklen_t size = sizeof v4;
    ::getsockname(v4_, reinterpret_cast<sockaddr*>(&v4), &size);
    port_ = ntohs(v4.sin_port);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = v4.sin_port;
    listen_at(v6_, reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  }
  ~CountingListener() {
    ::close(v4_);
    ::close(v6_);
  }
  CountingListener(const CountingListener&) = delete;
  CountingListener& operator=(const CountingListener&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// The number of connections since the last call.
  int count_connects() const { return count(v4_) + count(v6_); }

 private:
  static void listen_at(int fd, const sockaddr* address, socklen_t size) {
    // On a machine without IPv6 the count stays 0.
    if (::bind(fd, address, size) == 0) ::listen(fd, SOMAXCONN);
  }
  static int count(int fd) {
    int connects = 0;
    for (int accepted = -1; (accepted = ::accept(fd, nullptr, nullptr)) >= 0; ++connects) {
      ::close(accepted);
    }
    return connects;
  }

  static constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int v4_ = ::socket(AF_INET, kType, 0);
  const int v6_ = ::socket(AF_INET6, kType, 0);
  std::uint16_t port_ = 0;
};

/// A caller and its answers, one at a time.
class CallerRig {
 public:
  explicit CallerRig(HostResolver& resolver, HttpCallerOptions options = {},
                     AddressFilter filter = allow_all())
      : caller_(HttpCaller::start(std::move(options), resolver, std::move(filter)).value()) {}

  static AddressFilter allow_all() {
    return [](const IpAddress&, std::uint16_t) { return ok(); };
  }

  CallOutcome call(const std::string& url, HttpRequest request = post("{}")) {
    Result<HttpUrl> parsed = parse_http_url(url);
    if (!parsed) {
      return CallFailure{CallStep::filter, CallFailure::Kind::failed, parsed.error().message};
    }
    caller_->call(*std::move(parsed), std::move(request),
                  [this](CallOutcome outcome) { outcomes_.push(std::move(outcome)); });
    return outcomes_.pop();
  }

  static HttpRequest post(std::string body) {
    return {.method = "POST", .target = "", .headers = {}, .body = std::move(body)};
  }
  HttpCaller& caller() { return *caller_; }

 private:
  Mailbox<CallOutcome> outcomes_;
  std::unique_ptr<HttpCaller> caller_;  // destroyed first
};

/// Returns the failure of a call. Fails the test if the call has an answer.
inline CallFailure failure_of(const CallOutcome& outcome) {
  if (const auto* const failure = std::get_if<CallFailure>(&outcome)) return *failure;
  ADD_FAILURE() << "answered " << std::get<HttpResponse>(outcome).status;
  return {};
}
inline HttpResponse answer_of(const CallOutcome& outcome) {
  if (const auto* const answer = std::get_if<HttpResponse>(&outcome)) return *answer;
  ADD_FAILURE() << std::get<CallFailure>(outcome).message;
  return {.status = 0};
}

}  // namespace detent::net
