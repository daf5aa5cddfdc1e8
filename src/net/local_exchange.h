// A request that came over no connection: what answers requests of the network answers it, too, and
// the answer goes to a callback. A server that is several behind one door asks itself this way.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "detent/unique_function.h"
#include "net/exchange.h"
#include "net/http_message.h"

namespace detent::net {

/// Thread-safe. Owned by the Responder made of it; who may abandon it keeps a weak pointer.
class LocalExchange final : public Responder::Exchange {
 public:
  /// Told the answer, once, on the thread that gives it; nothing when every copy of the Responder
  /// went away before. Returns whether the answer goes on to somebody: who gave it learns that by
  /// Responder::offer().
  using Done = UniqueFunction<bool(std::optional<HttpResponse>)>;

  explicit LocalExchange(Done done) : done_(std::move(done)) {}
  ~LocalExchange() override;
  LocalExchange(const LocalExchange&) = delete;
  LocalExchange& operator=(const LocalExchange&) = delete;

  /// Nobody wants the answer any more: on_gone runs, here, and `done` never. Does nothing after an
  /// answer.
  void abandon() DETENT_EXCLUDES(mutex_);

  bool send(HttpResponse response) override DETENT_EXCLUDES(mutex_);
  void on_gone(UniqueFunction<void()> gone) override DETENT_EXCLUDES(mutex_);
  /// There is no stream here: who begins one has answered 501.
  bool stream(HttpResponse head) override;
  bool send_more(std::string_view /*bytes*/) override { return false; }
  void end() override {}
  void on_stream_gone(UniqueFunction<void()> gone) override { gone(); }

 private:
  bool finish(std::optional<HttpResponse> response) DETENT_EXCLUDES(mutex_);

  Mutex mutex_;
  Done done_ DETENT_GUARDED_BY(mutex_);  // empty once it has run, or never will
  UniqueFunction<void()> gone_ DETENT_GUARDED_BY(mutex_);
  bool is_abandoned_ DETENT_GUARDED_BY(mutex_) = false;
};

}  // namespace detent::net
