// instructions: lets callgrind count the instructions of timer operations. So even a small change
// is visible on a busy machine. bench/wheel/count_instructions runs this program.
//
// The program runs fixed operations on 10 000 timers, for each main wheel and for an empty queue.
// Each phase is one dump of callgrind's counters, with the name "QUEUE OPERATION COUNT".
// Instructions between the phases do not count. The program is useful only under valgrind. With
// --planted, the operations of TimerWheel do extra work, which bench/wheel/count_instructions must
// detect.
#include <valgrind/callgrind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "bench/wheel/baseline_queues.h"
#include "bench/wheel/own_queues.h"
#include "bench/wheel/timer_workloads.h"

namespace detent::bench {
namespace {

constexpr std::uint32_t kTimers = 10'000;

/// Counts the instructions between start() and finish().
class Phase {
 public:
  explicit Phase(std::string queue) : queue_(std::move(queue)) {}
  void start() { CALLGRIND_ZERO_STATS; }
  void finish(const char* operation, std::size_t count) {
    const std::string name = queue_ + " " + operation + " " + std::to_string(count);
    CALLGRIND_DUMP_STATS_AT(name.c_str());
  }

 private:
  std::string queue_;
};

std::vector<Armed> random_timers(Rng& random) {
  std::vector<Armed> timers(kTimers);
  for (std::uint32_t id = 0; id < kTimers; ++id) timers[id] = {id, u60k(random)};
  for (std::uint32_t i = 0; i < kTimers; ++i) {
    std::swap(timers[i].index, timers[i + random.below(kTimers - i)].index);
  }
  return timers;
}

// Every phase runs once before it is counted, so the queue has already allocated its memory.
template <class Queue>
void count_all(const char* name) {
  Rng random(1);
  const std::vector<Armed> timers = random_timers(random);
  Phase phase(name);
  Queue queue(Capacity{.timers = kTimers});
  Fired fired(kTimers);
  for (const Armed& timer : timers) queue.schedule(timer.index, timer.deadline);
  for (const Armed& timer : timers) queue.cancel(timer.index);

  phase.start();
  for (const Armed& timer : timers) queue.schedule(timer.index, timer.deadline);
  phase.finish("schedule", kTimers);

  phase.start();
  for (const Armed& timer : timers) queue.postpone(timer.index, timer.deadline + 60'000);
  phase.finish("postpone", kTimers);

  phase.start();
  for (const Armed& timer : timers) queue.cancel(timer.index);
  phase.finish("cancel", kTimers);

  for (const Armed& timer : timers) queue.schedule(timer.index, timer.deadline);
  phase.start();
  for (std::uint32_t i = 0; i < kTimers; ++i) fired.sum += queue.next();
  phase.finish("next_wakeup", kTimers);

  phase.start();
  for (Tick now = 1; now <= 60'000; ++now) queue.advance(now, fired);
  phase.finish("fire", kTimers);
}

/// A queue whose operations take about a tenth more instructions than necessary.
template <class Queue>
class Laden : public Queue {
 public:
  using Queue::Queue;
  void schedule(std::uint32_t index, Tick deadline) {
    waste();
    Queue::schedule(index, deadline);
  }
  void cancel(std::uint32_t index) {
    waste();
    Queue::cancel(index);
  }

 private:
  void waste() {
    for (std::uint32_t i = 0; i < 2; ++i) wasted_ = wasted_ + i;
  }
  volatile std::uint32_t wasted_ = 0;
};

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent;
  using namespace detent::bench;
  count_all<Outlined<NullQueue>>("null");
  if (argc > 1 && std::string_view(argv[1]) == "--planted") {
    count_all<Outlined<Laden<OwnQueue<TimerWheel>>>>("TimerWheel");
  } else {
    count_all<Outlined<OwnQueue<TimerWheel>>>("TimerWheel");
  }
  count_all<Outlined<DenseWheelQueue>>("DenseWheel");
  count_all<Outlined<OwnQueue<FifoTimerWheel>>>("FifoTimerWheel");
}
