#include "net/exchange.h"

#include "detent/check.h"

namespace detent::net {

void Responder::send(HttpResponse response) const { exchange_->send(std::move(response)); }

void Responder::on_gone(UniqueFunction<void()> gone) const { exchange_->on_gone(std::move(gone)); }

Responder ExchangeLink::open(const std::shared_ptr<ExchangeLink>& link) {
  std::uint64_t request = 0;
  {
    MutexLock lock(link->mu_);
    DETENT_CHECK(link->target_ != nullptr);
    DETENT_CHECK(!link->waiting_);
    link->waiting_ = true;
    request = ++link->request_;
  }
  return Responder(std::make_shared<Responder::Exchange>(link, request));
}

bool ExchangeLink::is_waiting() const {
  MutexLock lock(mu_);
  return waiting_;
}

void ExchangeLink::close() {
  UniqueFunction<void()> gone;
  {
    MutexLock lock(mu_);
    target_ = nullptr;
    gone = std::move(gone_);
  }
  if (gone) gone();
}

void ExchangeLink::send(std::uint64_t request, std::optional<HttpResponse> response) {
  UniqueFunction<void()> dropped;  // the caller's code: destroyed after the lock is released
  MutexLock lock(mu_);
  if (!is_waiting_for(request) || target_ == nullptr) return;
  waiting_ = false;
  dropped = std::move(gone_);
  // Posted under the lock: close(), which ends the target's life, has to wait for it.
  target_->post_answer(std::move(response));
}

void ExchangeLink::on_gone(std::uint64_t request, UniqueFunction<void()> gone) {
  UniqueFunction<void()> replaced;
  {
    MutexLock lock(mu_);
    if (!is_waiting_for(request)) return;
    if (target_ != nullptr) {
      replaced = std::exchange(gone_, std::move(gone));
      return;
    }
  }
  gone();
}

}  // namespace detent::net
