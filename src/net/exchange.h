// One request's right to an answer, between the threads that answer and the thread of its
// connection.
//
// A connection has at most one request waiting for an answer, so all requests of a connection share
// one ExchangeLink, and an exchange is a link and the request's number. The link's lock decides
// every race: an answer, the loss of the last Responder and the client's going away each take
// effect only if they are first. Whatever came second finds the request over and does nothing.
//
// The link refers to the connection only until close(); after that it stands alone, so Responders
// may outlive their connection and the server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "detent/unique_function.h"
#include "net/http_server.h"

namespace detent::net {

/// The connection, as the link sees it.
class AnswerTarget {
 public:
  virtual ~AnswerTarget() = default;
  /// Hands the answer to the connection's thread; without one the request was dropped. Called from
  /// any thread, with the link's lock held: must not block and must not call back into the link.
  virtual void post_answer(std::optional<HttpResponse> response) = 0;
};

/// Thread-safe. Owned together by the connection and the exchanges of its requests.
class ExchangeLink {
 public:
  /// Requires: `target` lives until close() was called.
  explicit ExchangeLink(AnswerTarget& target) : target_(&target) {}

  // For the connection, on its thread.

  /// Starts the next request. Requires: the one before is over; not closed.
  static Responder open(const std::shared_ptr<ExchangeLink>& link);
  /// True from open() until an answer is posted.
  bool is_waiting() const;
  /// The connection is no more. If a request was waiting, runs its on_gone callback, here.
  void close();

  // For exchanges, from any thread.

  /// Without a response: the last Responder has gone.
  void send(std::uint64_t request, std::optional<HttpResponse> response);
  void on_gone(std::uint64_t request, UniqueFunction<void()> gone);

 private:
  bool is_waiting_for(std::uint64_t request) const DETENT_REQUIRES(mu_) {
    return waiting_ && request_ == request;
  }

  mutable Mutex mu_;
  AnswerTarget* target_ DETENT_GUARDED_BY(mu_);  // null once closed
  std::uint64_t request_ DETENT_GUARDED_BY(mu_) = 0;
  bool waiting_ DETENT_GUARDED_BY(mu_) = false;  // stays true when closed unanswered
  UniqueFunction<void()> gone_ DETENT_GUARDED_BY(mu_);
};

/// What the copies of one Responder share. Answers 500 when the last of them goes.
class Responder::Exchange {
 public:
  Exchange(std::shared_ptr<ExchangeLink> link, std::uint64_t request)
      : link_(std::move(link)), request_(request) {}
  ~Exchange() { link_->send(request_, std::nullopt); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void send(HttpResponse response) { link_->send(request_, std::move(response)); }
  void on_gone(UniqueFunction<void()> gone) { link_->on_gone(request_, std::move(gone)); }

 private:
  const std::shared_ptr<ExchangeLink> link_;
  const std::uint64_t request_;
};

}  // namespace detent::net
