// Requests to a server that sometimes does not answer. Each request has a time-out. The answer or
// the time-out settles the request, whichever comes first. The other event then has no effect.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "detent/simulation.h"

using namespace std::chrono_literals;

class Requests {
 public:
  explicit Requests(detent::Scheduler& scheduler) : scheduler_(scheduler) {}

  void send(int id) {
    pending_[id] = scheduler_.schedule_after(2s, [this, id] {
      ++timed_out_;
      pending_.erase(id);  // a timer may be destroyed in its own job
    });
  }
  void on_answer(int id) { answered_ += pending_.erase(id); }  // cancels the time-out

  std::size_t answered() const { return answered_; }
  std::size_t timed_out() const { return timed_out_; }
  std::size_t pending() const { return pending_.size(); }

 private:
  detent::Scheduler& scheduler_;
  std::map<int, detent::TimerHandle> pending_;
  std::size_t answered_ = 0;
  std::size_t timed_out_ = 0;
};

int main() {
  detent::Simulation simulation(1);
  Requests requests(simulation.scheduler());
  for (int id = 0; id < 100; ++id) {
    requests.send(id);
    // The server answers after 100 ms, but every tenth request after 10 s.
    const auto takes = id % 10 == 0 ? 10s : 100ms;
    simulation.scheduler().schedule_after(takes, [&, id] { requests.on_answer(id); }).release();
  }
  simulation.run_for(1min);
  std::printf("%zu answered, %zu timed out, %zu pending\n", requests.answered(),
              requests.timed_out(), requests.pending());
  const bool right = requests.answered() == 90 && requests.timed_out() == 10;
  return right && requests.pending() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
