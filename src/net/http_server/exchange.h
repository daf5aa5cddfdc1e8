// The right to answer one request. It is shared by the threads that can answer and the thread of
// the connection.
//
// A connection has at most one unanswered request, so all its requests share one ExchangeLink. An
// exchange is a link and the number of the request. Three events compete: an answer, the loss of
// the last Responder, and the disconnect of the client. The lock of the link decides which event is
// first. Only the first event takes effect.
//
// A streamed body waits in the link until the connection takes it. While one part is written,
// further bytes collect and become the next part. A slow client therefore delays no other client,
// and its waiting bytes are counted in one place.
//
// The link refers to the connection only until close(). Responders can therefore outlive their
// connection and the server.
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
#include "net/http_server/http_server.h"

namespace detent::net {

/// The detail of the 500 answer to a request that was dropped.
inline constexpr const char* kNoAnswer =
    "the server gave no answer to this request; the request may have taken effect";

/// The connection, as the link sees it.
class AnswerTarget {
 public:
  virtual ~AnswerTarget() = default;
  /// Hands the answer to the connection's thread. No value means that the request was dropped.
  /// Called from any thread with the link's lock held: must not block and must not call the link.
  virtual void post_answer(std::optional<HttpResponse> response) = 0;
  /// As post_answer(), with the head of an answer whose body is streamed.
  virtual void post_head(HttpResponse head) = 0;
  /// Makes the connection check the stream with take() or is_cut().
  virtual void post_look() = 0;
};

/// The next part of a streamed body.
struct StreamPart {
  std::string bytes;
  bool is_last = false;
};

/// Thread-safe. Owned together by the connection and the exchanges of its requests.
class ExchangeLink {
 public:
  /// Requires: `target` lives until close() was called. A stream may hold at most
  /// `max_stream_bytes` unwritten bytes.
  ExchangeLink(AnswerTarget& target, std::size_t max_stream_bytes)
      : max_stream_bytes_(max_stream_bytes), target_(&target) {}

  // For the connection, on its thread.

  /// Starts the next request. Requires: the previous request is over; the link is not closed.
  static Responder open(const std::shared_ptr<ExchangeLink>& link);
  /// True from open() until an answer is posted.
  bool is_waiting() const;
  /// The connection has ended. If a request was waiting or streamed, its on_gone callback runs in
  /// this call.
  void close();
  /// The client has closed its sending side, but may still read an answer. Returns false if a
  /// callback waits for the disconnect (on_gone); for that callback, the client has gone.
  bool end_input();
  /// Returns the next part of the stream. The previous part has been written.
  StreamPart take();
  /// The part has been written. Schedules another check if there is a further part.
  void part_written();
  /// Returns true if the rest of the stream must not be written.
  bool is_cut() const;
  /// The client wants no body: the stream is over, and its on_gone callback runs in this call.
  void refuse_body();

  // For exchanges, from any thread.

  /// Returns false if the request is over.
  bool send(std::uint64_t request, HttpResponse response);
  /// Returns false if the request is over, or if the client has closed its sending side.
  bool offer(std::uint64_t request, HttpResponse response);
  void on_gone(std::uint64_t request, UniqueFunction<void()> gone);
  /// Returns false if the request is over.
  bool stream(std::uint64_t request, HttpResponse head);
  bool send_more(std::uint64_t request, std::string_view bytes);
  void end(std::uint64_t request);
  void on_stream_gone(std::uint64_t request, UniqueFunction<void()> gone);
  /// Called when the last Responder or ResponseStream is destroyed.
  void drop(std::uint64_t request);

 private:
  enum class State : std::uint8_t {
    over,       // the request was answered, or no request was opened yet
    waiting,    // for an answer; stays so if the connection closes first
    streaming,  // stays so if the connection closes before the end of the body
    ended,      // the body is complete, but the connection has not taken all of it
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
  AnswerTarget* target_ DETENT_GUARDED_BY(mu_);  // null after close()
  std::uint64_t request_ DETENT_GUARDED_BY(mu_) = 0;
  State state_ DETENT_GUARDED_BY(mu_) = State::over;
  bool has_input_ended_ DETENT_GUARDED_BY(mu_) = false;  // the client has closed its sending side
  UniqueFunction<void()> gone_ DETENT_GUARDED_BY(mu_);
  std::string unsent_ DETENT_GUARDED_BY(mu_);           // bytes of the stream that wait for take()
  std::size_t writing_ DETENT_GUARDED_BY(mu_) = 0;      // bytes that the last take() returned
  bool is_look_posted_ DETENT_GUARDED_BY(mu_) = false;  // post_look() was called after last take()
};

/// The shared state of all copies of a Responder and its ResponseStream. When the last copy is
/// destroyed, an open request is answered with 500 and an open stream is cut. Each method does the
/// same as the method of that name of the handle. After an answer the methods do nothing.
class Responder::Exchange {
 public:
  virtual ~Exchange() = default;

  /// Returns false if the request is over.
  virtual bool send(HttpResponse response) = 0;
  /// Returns false if the request is over, or if the client may have gone.
  virtual bool offer(HttpResponse response) { return send(std::move(response)); }
  virtual void on_gone(UniqueFunction<void()> gone) = 0;
  /// Returns false if the request is over; then there is no stream.
  virtual bool stream(HttpResponse head) = 0;
  virtual bool send_more(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual void on_stream_gone(UniqueFunction<void()> gone) = 0;
};

}  // namespace detent::net
