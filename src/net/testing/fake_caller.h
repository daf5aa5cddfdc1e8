// An HttpCaller for tests that makes no calls: the test gives the answers.
#pragma once

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "net/http_client/http_caller.h"

namespace detent {

struct FakeCall {
  net::HttpUrl url;
  net::HttpRequest request;
  net::HttpCaller::Done done;

  void answer(int status, net::HttpHeaders headers = {}) {
    done(net::HttpResponse{
        .status = status, .content_type = "", .body = "", .headers = std::move(headers)});
  }
};

/// The calls that have begun. The test answers them. Thread-safe.
struct Calls {
  FakeCall next() {
    const MutexLock lock(mutex);
    while (begun.empty()) changed.wait(mutex);
    FakeCall call = std::move(begun.front());
    begun.pop_front();
    return call;
  }
  bool empty() const {
    const MutexLock lock(mutex);
    return begun.empty();
  }

  mutable Mutex mutex;
  CondVar changed;
  std::deque<FakeCall> begun DETENT_GUARDED_BY(mutex);
  bool is_cut DETENT_GUARDED_BY(mutex) = false;
};

class FakeCaller final : public net::HttpCaller {
 public:
  explicit FakeCaller(Calls& calls) : calls_(calls) {}
  ~FakeCaller() override {
    const MutexLock lock(calls_.mutex);
    calls_.is_cut = true;
  }
  FakeCaller(const FakeCaller&) = delete;
  FakeCaller& operator=(const FakeCaller&) = delete;
  using HttpCaller::call;
  CallNumber call(net::HttpUrl url, net::HttpRequest request, Done done,
                  WhenSlow /*slow*/) override {
    const MutexLock lock(calls_.mutex);
    calls_.begun.push_back({std::move(url), std::move(request), std::move(done)});
    calls_.changed.notify_all();
    return ++last_;
  }
  void abandon(CallNumber /*number*/) override {}  // no test needs it

 private:
  Calls& calls_;
  CallNumber last_ DETENT_GUARDED_BY(calls_.mutex) = 0;
};

}  // namespace detent
