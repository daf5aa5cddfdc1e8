// Retry with exponential backoff and jitter: waits of 200 ms, 400 ms, 800 ms … up to 10 s, each
// shortened by a random part. It ends when the call succeeds or eight attempts have failed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>

#include "detent/simulation.h"

using namespace std::chrono_literals;

class Retry {
 public:
  Retry(detent::Scheduler& scheduler, std::function<bool()> call, int attempts)
      : scheduler_(scheduler), call_(std::move(call)), attempts_left_(attempts) {}

  void start() {
    succeeded_ = call_();
    if (succeeded_ || --attempts_left_ == 0) return;
    timer_ = scheduler_.schedule_after(backoff_ * part_(random_), [this] { start(); });
    backoff_ = std::min<std::chrono::milliseconds>(2 * backoff_, 10s);
  }
  bool succeeded() const { return succeeded_; }
  int attempts_left() const { return attempts_left_; }

 private:
  detent::Scheduler& scheduler_;
  const std::function<bool()> call_;
  int attempts_left_;
  bool succeeded_ = false;
  std::chrono::milliseconds backoff_ = 200ms;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> part_{0.5, 1.0};
  detent::TimerHandle timer_;  // destroyed with the Retry, so no further attempt starts
};

int main() {
  detent::Simulation simulation(1);
  int calls = 0;
  Retry works_at_last(
      simulation.scheduler(), [&calls] { return ++calls == 5; }, 8);
  Retry never_works(
      simulation.scheduler(), [] { return false; }, 8);
  works_at_last.start();
  never_works.start();
  simulation.run_for(2min);
  std::printf("succeeded after %d calls; gave up with %d attempts left\n", calls,
              never_works.attempts_left());
  const bool right = works_at_last.succeeded() && calls == 5 && !never_works.succeeded();
  return right && never_works.attempts_left() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
