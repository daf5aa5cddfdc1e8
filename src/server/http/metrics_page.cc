#include "server/http/metrics_page.h"

#include <algorithm>

namespace detent::server {

bool MetricsPage::wait(Take take) {
  std::string page;
  {
    const MutexLock lock(mutex_);
    if (!is_final_ && !is_late()) {
      waiting_.push_back(std::move(take));
      return !std::exchange(is_asked_, true);
    }
    page = last_;
  }
  take(std::move(page));
  return false;
}

void MetricsPage::note(std::string page, Kind kind) {
  std::vector<Take> waiting;
  {
    const MutexLock lock(mutex_);
    if (is_final_) return;
    is_final_ = kind == Kind::last;
    is_asked_ = false;
    looks_ = 0;
    last_ = page;
    waiting.swap(waiting_);
  }
  for (Take& take : waiting) take(page);
}

void MetricsPage::look() {
  std::vector<Take> waiting;
  std::string page;
  {
    const MutexLock lock(mutex_);
    looks_ = is_asked_ ? std::min(looks_ + 1, 2) : 0;
    if (!is_late()) return;
    waiting.swap(waiting_);
    page = last_;
  }
  for (Take& take : waiting) take(page);
}

std::string MetricsPage::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

}  // namespace detent::server
