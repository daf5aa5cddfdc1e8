// A request without a connection: the handler of network requests answers it, and the answer goes
// to a callback. A node of a cluster uses it to ask its own shards.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "detent/unique_function.h"
#include "net/http_server/exchange.h"
#include "net/message/http_message.h"

namespace detent::net {

/// Thread-safe. Owned by the Responder made from it. A caller that may abandon it keeps a weak
/// pointer.
class LocalExchange final : public Responder::Exchange {
 public:
  /// Receives the answer once, on the answering thread. Receives no value if every copy of the
  /// Responder was destroyed first. Returns false if the answer cannot be delivered;
  /// Responder::offer() then returns false too.
  using Done = UniqueFunction<bool(std::optional<HttpResponse>)>;

  explicit LocalExchange(Done done) : done_(std::move(done)) {}
  ~LocalExchange() override;
  LocalExchange(const LocalExchange&) = delete;
  LocalExchange& operator=(const LocalExchange&) = delete;

  /// The answer is not needed any more: on_gone runs in this call, and `done` never runs. Does
  /// nothing after an answer.
  void abandon() DETENT_EXCLUDES(mutex_);

  bool send(HttpResponse response) override DETENT_EXCLUDES(mutex_);
  void on_gone(UniqueFunction<void()> gone) override DETENT_EXCLUDES(mutex_);
  /// Streams are not supported: a stream is answered with 501.
  bool stream(HttpResponse head) override;
  bool send_more(std::string_view /*bytes*/) override { return false; }
  void end() override {}
  void on_stream_gone(UniqueFunction<void()> gone) override { gone(); }

 private:
  bool finish(std::optional<HttpResponse> response) DETENT_EXCLUDES(mutex_);

  Mutex mutex_;
  Done done_ DETENT_GUARDED_BY(mutex_);  // empty after it has run or was abandoned
  UniqueFunction<void()> gone_ DETENT_GUARDED_BY(mutex_);
  bool is_abandoned_ DETENT_GUARDED_BY(mutex_) = false;
};

}  // namespace detent::net
