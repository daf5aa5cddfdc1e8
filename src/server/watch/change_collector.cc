#include "server/watch/change_collector.h"

#include <algorithm>
#include <utility>

namespace detent::server {

ChangeCollector::ChangeCollector(std::uint64_t run, ChangeFeed& feed)
    : log_(run), bell_(feed.bell()), rings_(true) {
  feeds_.emplace_back(std::shared_ptr<void>(), &feed);  // another object owns it
}

std::shared_ptr<ChangeFeed> ChangeCollector::new_feed() {
  auto feed = std::make_shared<ChangeFeed>();
  const MutexLock lock(mutex_);
  if (is_collecting_) {
    feed->watch();
  } else {  // drop changes of engines that have ended
    std::erase_if(feeds_, [](const auto& other) { return other.use_count() == 1; });
  }
  feeds_.push_back(feed);
  return feed;
}

void ChangeCollector::watch() {
  start();
  is_watched_ = true;
  // Changes from before come before the place where the client begins.
  take_changes();
}

void ChangeCollector::unwatch(MonotonicTime now) {
  is_watched_ = false;
  for_clients_until_ = now + kKeptUnwanted;
}

void ChangeCollector::want(MonotonicTime now) {
  start();
  wanted_until_ = now + kKeptUnwanted;
}

void ChangeCollector::start() {
  const MutexLock lock(mutex_);
  if (std::exchange(is_collecting_, true)) return;
  for (const auto& feed : feeds_) feed->watch();
}

void ChangeCollector::stop() {
  const MutexLock lock(mutex_);
  if (!std::exchange(is_collecting_, false)) return;
  for (const auto& feed : feeds_) feed->unwatch();
  log_.forget();
}

MonotonicTime ChangeCollector::collect(MonotonicTime now) {
  MonotonicTime next = MonotonicTime::max();
  if (!is_watched_) {
    next = std::max(for_clients_until_, wanted_until_);
    if (now >= next) {
      stop();
      return MonotonicTime::max();
    }
  }
  if (now < next_take_) return std::min(next, next_take_);
  next_take_ = now + kTakePeriod;
  take_changes();
  return rings_ ? next : std::min(next, next_take_);
}

void ChangeCollector::take_changes() {
  const MutexLock lock(mutex_);
  std::erase_if(feeds_, [this](const std::shared_ptr<ChangeFeed>& feed) {
    const bool is_last = feed.use_count() == 1;  // its engine has ended: this is all
    ChangeFeed::Taken taken = feed->take();
    for (TaskChange& change : taken.changes) log_.add(std::move(change));
    if (taken.missed > 0) log_.add_missed(taken.missed);
    return is_last;
  });
}

}  // namespace detent::server
