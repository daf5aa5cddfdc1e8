// One request's right to an answer, between the threads that answer and the thread of its
// connection.
//
// A connection has at most one request waiting for an answer, so all requests of a connection share
// one ExchangeLink, and an exchange is a link and the request's number. The link's lock decides
// every race: an answer, the loss of the last Responder and the client's going away each take
// effect only if they are first. Whatever came second finds the request over and does nothing.
//
// A streamed body waits in the link until the connection takes it: all that has gathered while the
// last part was written is the next part. So a slow client holds nobody up, and what waits for it
// is counted in one place.
//
// The link refers to the connection only until close(); after that it stands alone, so Responders
// may outlive their connection and the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  /// The same with the head of an answer whose body is streamed.
  virtual void post_head(HttpResponse head) = 0;
  /// Has the connection look at the stream: take() or is_cut().
  virtual void post_look() = 0;
};

/// What is next of a streamed body.
struct StreamPart {
  std::string bytes;
  bool is_last = false;
};

/// Thread-safe. Owned together by the connection and the exchanges of its requests.
class ExchangeLink {
 public:
  /// Requires: `target` lives until close() was called. A stream may have `max_stream_bytes` that
  /// are not written yet.
  ExchangeLink(AnswerTarget& target, std::size_t max_stream_bytes)
      : max_stream_bytes_(max_stream_bytes), target_(&target) {}

  // For the connection, on its thread.

  /// Starts the next request. Requires: the one before is over; not closed.
  static Responder open(const std::shared_ptr<ExchangeLink>& link);
  /// True from open() until an answer is posted.
  bool is_waiting() const;
  /// The connection is no more. If a request was waiting or streamed, runs its on_gone callback,
  /// here.
  void close();
  /// The client sends no more, but may take an answer. False when somebody waits to be told that it
  /// has gone (on_gone), for whom it has.
  bool end_input();
  /// What the stream has to be written next; the part before is written.
  StreamPart take();
  /// The part is written. Looks again, later, if there is another.
  void part_written();
  /// The stream is not to be written to its end.
  bool is_cut() const;
  /// The client wants no body: the stream is over, and its on_gone callback runs, here.
  void refuse_body();

  // For exchanges, from any thread.

  /// False when the request is over.
  bool send(std::uint64_t request, HttpResponse response);
  /// Likewise, and when the client sends no more.
  bool offer(std::uint64_t request, HttpResponse response);
  void on_gone(std::uint64_t request, UniqueFunction<void()> gone);
  /// False when the request is over.
  bool stream(std::uint64_t request, HttpResponse head);
  bool send_more(std::uint64_t request, std::string_view bytes);
  void end(std::uint64_t request);
  void on_stream_gone(std::uint64_t request, UniqueFunction<void()> gone);
  /// The last Responder or ResponseStream has gone.
  void drop(std::uint64_t request);

 private:
  enum class State : std::uint8_t {
    over,       // answered
    waiting,    // for an answer; stays so when closed unanswered
    streaming,  // stays so when closed before its end
    ended,      // nothing more is sent, but not all is taken
    cut,
  };
  bool is(State state, std::uint64_t request) const DETENT_REQUIRES(mu_) {
    return state_ == state && request_ == request;
  }
  void cut() DETENT_REQUIRES(mu_);
  void look() DETENT_REQUIRES(mu_);
  bool post(std::uint64_t request, HttpResponse& response, UniqueFunction<void()>& dropped)
      DETENT_REQUIRES(mu_);

  const std::size_t max_stream_bytes_;

  mutable Mutex mu_;
  AnswerTarget* target_ DETENT_GUARDED_BY(mu_);  // null once closed
  std::uint64_t request_ DETENT_GUARDED_BY(mu_) = 0;
  State state_ DETENT_GUARDED_BY(mu_) = State::over;
  bool has_input_ended_ DETENT_GUARDED_BY(mu_) = false;  // the client sends no more
  UniqueFunction<void()> gone_ DETENT_GUARDED_BY(mu_);
  std::string unsent_ DETENT_GUARDED_BY(mu_);           // of a stream
  std::size_t writing_ DETENT_GUARDED_BY(mu_) = 0;      // bytes of the part taken
  bool is_look_posted_ DETENT_GUARDED_BY(mu_) = false;  // and take() not called since
};

/// What the copies of one Responder, and of its ResponseStream, share. When the last of them goes,
/// a request is answered 500 and a stream is cut. Each method is what the handle's one of that name
/// says; after an answer they do nothing.
class Responder::Exchange {
 public:
  virtual ~Exchange() = default;

  /// False when the request is over.
  virtual bool send(HttpResponse response) = 0;
  /// Likewise, and when the client cannot be known to be there.
  virtual bool offer(HttpResponse response) { return send(std::move(response)); }
  virtual void on_gone(UniqueFunction<void()> gone) = 0;
  /// False when the request is over: then there is no stream.
  virtual bool stream(HttpResponse head) = 0;
  virtual bool send_more(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual void on_stream_gone(UniqueFunction<void()> gone) = 0;
};

}  // namespace detent::net
