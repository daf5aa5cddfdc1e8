#include "sinks/pending_sends.h"

#include <utility>

namespace detent {

std::uint64_t PendingSends::add(Sink::Done done) {
  const MutexLock lock(mutex_);
  sends_.emplace(++last_, std::move(done));
  return last_;
}

void PendingSends::finish(std::uint64_t number, Result<void> result) {
  Sink::Done done;
  {
    const MutexLock lock(mutex_);
    const auto found = sends_.find(number);
    if (found == sends_.end()) return;
    done = std::move(found->second);
    sends_.erase(found);
  }
  done(std::move(result));
}

void PendingSends::fail_all(const Error& error) {
  std::map<std::uint64_t, Sink::Done> failed;
  {
    const MutexLock lock(mutex_);
    failed.swap(sends_);
  }
  for (auto& [number, done] : failed) done(error);
}

void PendingSends::clear() {
  std::map<std::uint64_t, Sink::Done> forgotten;
  const MutexLock lock(mutex_);
  forgotten.swap(sends_);
}

}  // namespace detent
