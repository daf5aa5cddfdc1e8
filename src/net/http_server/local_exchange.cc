#include "net/http_server/local_exchange.h"

#include <utility>

namespace detent::net {

// Ignores the result: false means that the request was answered before.
LocalExchange::~LocalExchange() { (void)finish(std::nullopt); }

// Callbacks belong to others, so they run, and are destroyed, after the lock is released.

void LocalExchange::abandon() {
  Done dropped;
  UniqueFunction<void()> gone;
  {
    const MutexLock lock(mutex_);
    if (!done_) return;
    is_abandoned_ = true;
    dropped = std::move(done_);
    gone = std::move(gone_);
  }
  if (gone) gone();
}

bool LocalExchange::send(HttpResponse response) { return finish(std::move(response)); }

void LocalExchange::on_gone(UniqueFunction<void()> gone) {
  UniqueFunction<void()> replaced;
  {
    const MutexLock lock(mutex_);
    if (!is_abandoned_) {
      if (done_) replaced = std::exchange(gone_, std::move(gone));
      return;
    }
  }
  gone();
}

bool LocalExchange::stream(HttpResponse head) {
  head.status = 501;
  // Ignores the result: false means that the caller has abandoned the request.
  (void)finish(std::move(head));
  return false;
}

bool LocalExchange::finish(std::optional<HttpResponse> response) {
  Done done;
  UniqueFunction<void()> dropped;
  {
    const MutexLock lock(mutex_);
    if (!done_) return false;
    done = std::move(done_);
    dropped = std::move(gone_);
  }
  return done(std::move(response));
}

}  // namespace detent::net
