// The thread pool of executor.h. One mutex guards its bounded queue. Workers sleep while the queue
// is empty.
#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "detent/check.h"
#include "detent/executor.h"

namespace detent {

/// Thread-safe. The queue holds at most `capacity` jobs.
class ThreadPool::Impl {
 public:
  explicit Impl(ThreadPoolOptions options)
      : capacity_(options.capacity), when_full_(options.when_full) {
    DETENT_CHECK(options.capacity >= 1);
    const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t count = options.threads != 0 ? options.threads : processors;
    threads_.reserve(count);
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { work(); });
    } catch (...) {
      finish();  // join the threads that did start
      throw;
    }
  }

  ~Impl() {
    DETENT_CHECK(pool_of_this_thread != this);  // it would wait for itself
    finish();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool was_left_by_fork() const noexcept { return home_.was_left(); }

  void execute(Job job) {
    if (home_.was_left()) [[unlikely]] {
      internal::check_failed(
          "this ThreadPool was made before fork(), and its threads are in the parent process; make "
          "it after fork()",
          __FILE__, __LINE__);
    }
    if (enqueue(job)) {
      available_.notify_one();
    } else {
      job();
    }
  }

 private:
  /// Takes `job` if the queue has room. If the caller may wait, waits for room first. Returns
  /// whether it took the job.
  bool enqueue(Job& job) {
    const bool may_wait = when_full_ == WhenPoolFull::block && pool_of_this_thread != this;
    MutexLock lock(mu_);
    while (queue_.size() == capacity_ && may_wait) taken_.wait(mu_);
    if (queue_.size() == capacity_) return false;
    queue_.push_back(std::move(job));
    return true;
  }

  /// Returns the next job; an empty one if the queue is empty and no more jobs will come.
  Job take() {
    MutexLock lock(mu_);
    while (queue_.empty() && !finishing_) available_.wait(mu_);
    if (queue_.empty()) return {};
    Job job = std::move(queue_.front());
    queue_.pop_front();
    taken_.notify_one();
    return job;
  }

  // The contract of an executor: a job that throws ends the process.
  void work() noexcept {
    pool_of_this_thread = this;
    while (Job job = take()) job();
  }

  void finish() {
    {
      MutexLock lock(mu_);
      finishing_ = true;
    }
    available_.notify_all();
    for (Thread& thread : threads_) thread.join();
  }

  // The pool whose worker the current thread is. A worker must not wait for room in its own pool.
  static thread_local const Impl* pool_of_this_thread;

  const internal::HomeProcess home_;
  const std::size_t capacity_;
  const WhenPoolFull when_full_;
  Mutex mu_;
  CondVar available_;
  CondVar taken_;
  std::deque<Job> queue_ DETENT_GUARDED_BY(mu_);
  bool finishing_ DETENT_GUARDED_BY(mu_) = false;
  std::vector<Thread> threads_;  // used only by the threads that construct and destroy the pool
};

thread_local const ThreadPool::Impl* ThreadPool::Impl::pool_of_this_thread = nullptr;

ThreadPool::ThreadPool(ThreadPoolOptions options) : impl_(std::make_unique<Impl>(options)) {}
ThreadPool::~ThreadPool() {
  if (impl_->was_left_by_fork()) static_cast<void>(impl_.release());  // waiting would never end
}

void ThreadPool::execute(Job job) { impl_->execute(std::move(job)); }

}  // namespace detent
