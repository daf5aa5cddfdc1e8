#include "net/http_server/exchange.h"

#include "detent/check.h"

namespace detent::net {

// ---- handles ------------------------------------------------------------------------------------

// Ignores the result, because Responder::send() does not report a client that has gone.
void Responder::send(HttpResponse response) const { (void)exchange_->send(std::move(response)); }

bool Responder::offer(HttpResponse response) const { return exchange_->offer(std::move(response)); }

void Responder::on_gone(UniqueFunction<void()> gone) const { exchange_->on_gone(std::move(gone)); }

ResponseStream Responder::stream(HttpResponse head) const {
  // If another answer was first, the stream gets no exchange, so that it cannot write into that
  // answer.
  return ResponseStream(exchange_->stream(std::move(head)) ? exchange_ : nullptr);
}

bool ResponseStream::send(std::string_view bytes) const {
  return exchange_ != nullptr && exchange_->send_more(bytes);
}

void ResponseStream::end() const {
  if (exchange_ != nullptr) exchange_->end();
}

void ResponseStream::on_gone(UniqueFunction<void()> gone) const {
  if (exchange_ == nullptr) return gone();
  exchange_->on_stream_gone(std::move(gone));
}

// ---- a request of a connection ------------------------------------------------------------------

namespace {

class LinkExchange final : public Responder::Exchange {
 public:
  LinkExchange(std::shared_ptr<ExchangeLink> link, std::uint64_t request)
      : link_(std::move(link)), request_(request) {}
  ~LinkExchange() override { link_->drop(request_); }
  LinkExchange(const LinkExchange&) = delete;
  LinkExchange& operator=(const LinkExchange&) = delete;

  bool send(HttpResponse response) override { return link_->send(request_, std::move(response)); }
  bool offer(HttpResponse response) override { return link_->offer(request_, std::move(response)); }
  void on_gone(UniqueFunction<void()> gone) override { link_->on_gone(request_, std::move(gone)); }
  bool stream(HttpResponse head) override { return link_->stream(request_, std::move(head)); }
  bool send_more(std::string_view bytes) override { return link_->send_more(request_, bytes); }
  void end() override { link_->end(request_); }
  void on_stream_gone(UniqueFunction<void()> gone) override {
    link_->on_stream_gone(request_, std::move(gone));
  }

 private:
  const std::shared_ptr<ExchangeLink> link_;
  const std::uint64_t request_;
};

}  // namespace

// ---- for the connection -------------------------------------------------------------------------

Responder ExchangeLink::open(const std::shared_ptr<ExchangeLink>& link) {
  std::uint64_t request = 0;
  {
    MutexLock lock(link->mu_);
    DETENT_CHECK(link->target_ != nullptr);
    DETENT_CHECK(link->state_ == State::over);
    link->state_ = State::waiting;
    link->has_input_ended_ = false;
    request = ++link->request_;
  }
  return Responder(std::make_shared<LinkExchange>(link, request));
}

bool ExchangeLink::is_waiting() const {
  MutexLock lock(mu_);
  return state_ == State::waiting;
}

void ExchangeLink::close() {
  UniqueFunction<void()> gone;
  {
    MutexLock lock(mu_);
    target_ = nullptr;
    unsent_ = {};
    gone = std::move(gone_);
  }
  if (gone) gone();
}

bool ExchangeLink::end_input() {
  MutexLock lock(mu_);
  if (gone_) return false;
  has_input_ended_ = true;
  return true;
}

StreamPart ExchangeLink::take() {
  MutexLock lock(mu_);
  is_look_posted_ = false;
  writing_ = unsent_.size();
  const bool is_last = state_ == State::ended;
  if (is_last) state_ = State::over;
  return {.bytes = std::exchange(unsent_, {}), .is_last = is_last};
}

void ExchangeLink::part_written() {
  MutexLock lock(mu_);
  writing_ = 0;
  is_look_posted_ = false;
  if (!unsent_.empty() || state_ == State::ended) look();
}

bool ExchangeLink::is_cut() const {
  MutexLock lock(mu_);
  return state_ == State::cut;
}

void ExchangeLink::refuse_body() {
  UniqueFunction<void()> gone;
  {
    MutexLock lock(mu_);
    state_ = State::over;
    unsent_ = {};
    gone = std::move(gone_);
  }
  if (gone) gone();
}

// ---- for exchanges ------------------------------------------------------------------------------

// The lock is held while the target is called, because close() must wait for the call before the
// target is destroyed. Callbacks run, and are destroyed, after the lock is released.

bool ExchangeLink::send(std::uint64_t request, HttpResponse response) {
  UniqueFunction<void()> dropped;
  MutexLock lock(mu_);
  return post(request, response, dropped);
}

bool ExchangeLink::offer(std::uint64_t request, HttpResponse response) {
  UniqueFunction<void()> dropped;
  MutexLock lock(mu_);
  return !has_input_ended_ && post(request, response, dropped);
}

bool ExchangeLink::post(std::uint64_t request, HttpResponse& response,
                        UniqueFunction<void()>& dropped) {
  if (!is(State::waiting, request) || target_ == nullptr) return false;
  state_ = State::over;
  dropped = std::move(gone_);
  target_->post_answer(std::move(response));
  return true;
}

void ExchangeLink::on_gone(std::uint64_t request, UniqueFunction<void()> gone) {
  UniqueFunction<void()> replaced;
  {
    MutexLock lock(mu_);
    if (!is(State::waiting, request)) return;
    if (target_ != nullptr && !has_input_ended_) {
      replaced = std::exchange(gone_, std::move(gone));
      return;
    }
  }
  gone();
}

bool ExchangeLink::stream(std::uint64_t request, HttpResponse head) {
  UniqueFunction<void()> dropped;
  MutexLock lock(mu_);
  if (!is(State::waiting, request) || target_ == nullptr) return false;
  state_ = State::streaming;
  dropped = std::move(gone_);
  unsent_ = std::exchange(head.body, {});
  target_->post_head(std::move(head));
  return true;
}

bool ExchangeLink::send_more(std::uint64_t request, std::string_view bytes) {
  MutexLock lock(mu_);
  if (!is(State::streaming, request) || target_ == nullptr) return false;
  if (unsent_.size() + writing_ + bytes.size() > max_stream_bytes_) {
    cut();
    return false;
  }
  unsent_.append(bytes);
  if (!bytes.empty()) look();
  return true;
}

void ExchangeLink::end(std::uint64_t request) {
  UniqueFunction<void()> dropped;
  MutexLock lock(mu_);
  if (!is(State::streaming, request) || target_ == nullptr) return;
  state_ = State::ended;
  dropped = std::move(gone_);
  look();
}

void ExchangeLink::on_stream_gone(std::uint64_t request, UniqueFunction<void()> gone) {
  UniqueFunction<void()> replaced;
  {
    MutexLock lock(mu_);
    const bool is_live = is(State::streaming, request) || is(State::cut, request);
    if (is_live && target_ != nullptr) {
      replaced = std::exchange(gone_, std::move(gone));
      return;
    }
  }
  gone();
}

void ExchangeLink::drop(std::uint64_t request) {
  UniqueFunction<void()> dropped;
  MutexLock lock(mu_);
  if (target_ == nullptr) return;
  if (is(State::streaming, request)) {
    dropped = std::move(gone_);
    cut();
  } else if (is(State::waiting, request)) {
    state_ = State::over;
    dropped = std::move(gone_);
    target_->post_answer(std::nullopt);
  }
}

void ExchangeLink::cut() {
  state_ = State::cut;
  unsent_ = {};
  target_->post_look();  // even if a look is posted, because that look may come while a part is
                         // written
}

void ExchangeLink::look() {
  if (!std::exchange(is_look_posted_, true)) target_->post_look();
}

}  // namespace detent::net
