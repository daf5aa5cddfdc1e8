// A Sink for tests that sends no messages: the test gives the answers.
#pragma once

#include <deque>
#include <utility>

#include "base/mutex.h"
#include "sinks/sink.h"

namespace detent {

struct FakeSend {
  SinkMessage message;
  Sink::Done done;
};

/// Thread-safe.
class FakeSink final : public Sink {
 public:
  void send(SinkMessage message, Done done) override {
    const MutexLock lock(mutex_);
    sends_.push_back({std::move(message), std::move(done)});
    changed_.notify_all();
  }

  /// Waits for the oldest message that was not returned yet, and returns it.
  FakeSend next() {
    const MutexLock lock(mutex_);
    while (sends_.empty()) changed_.wait(mutex_);
    FakeSend send = std::move(sends_.front());
    sends_.pop_front();
    return send;
  }
  std::size_t waiting() const {
    const MutexLock lock(mutex_);
    return sends_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<FakeSend> sends_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent
