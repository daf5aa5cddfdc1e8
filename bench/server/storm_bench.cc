// storm_bench: how a million tasks that are due in one second in one queue affect another queue.
//
//     storm_bench [--tasks 1m] [--server build/release/detent] [--csv FILE]
//
// By default, the engine and the RocksDB store run in this process, with a sync after every commit.
// With `--server` they run in a server process, and workers wait over HTTP, as they do for users.
// The due times of the `--tasks` tasks of queue "storm" are spread over one second, and this queue
// has no workers. Queue "calm" has a task due in each millisecond. Four workers wait for its tasks,
// lease and complete them.
//
// The figures are the lateness of the tasks of "calm", in three periods: the seconds before the
// storm (its tasks are still being loaded when this period begins), the second of the storm, and
// the ten seconds after it, when the backlog moves to disk. The first run has no storm. The second
// run has a storm. In the third run, eight workers also take the tasks of the storm. Figures are
// milliseconds. In the storm, the p99 should be at most twice the p99 of the same second without a
// storm. The CSV file has this ratio as "p99 of calm". TMPDIR is the folder of the data.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "bench/arguments.h"
#include "bench/results.h"
#include "bench/server/server_socket.h"
#include "bench/server/storm_plan.h"
#include "bench/server/storm_server.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBatch = 5'000;

class Storm {
 public:
  Storm(std::size_t tasks, std::string folder) : tasks_(tasks) {
    auto store = RocksDbStore::open({.path = std::move(folder)}).value();
    auto engine = Engine::open(*store, clock_, {}).value();
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = std::move(store), .engine = std::move(engine)}, clock_);
  }

  std::vector<Seen> run(int storm_workers) {
    const auto now = std::chrono::ceil<milliseconds>(clock_.wall_now());
    const WallTime storm = now + kStormAfter;
    start_ = now;
    if (tasks_ > 0) load("storm", tasks_, storm, kStormFor);
    // Loading takes a while. The measurement begins after it.
    const WallTime calm = std::max(std::chrono::ceil<milliseconds>(clock_.wall_now()), now);
    load("calm", static_cast<std::size_t>((start_ + kCalmFor - calm).count()), calm,
         start_ + kCalmFor - calm);
    for (int i = 0; i < kCalmWorkers; ++i) work("calm", 10);
    for (int i = 0; i < storm_workers; ++i) work("storm", 1'000);
    Doorbell never;
    clock_.wait(never, clock_.now() + (start_ + kCalmFor - clock_.wall_now()));
    (void)thread_->post([](Engine& engine) {
      const HistogramSnapshot commits = engine.stats().commit_time;
      std::printf("commits: p50 %.2f  p99 %.2f  max %.2f\n",
                  Lateness(commits.quantile(0.5)).count(), Lateness(commits.quantile(0.99)).count(),
                  Lateness(commits.quantile(1)).count());
    });
    thread_->stop();
    const MutexLock lock(mutex_);
    return seen_;
  }

 private:
  void load(const std::string& queue, std::size_t count, WallTime from, milliseconds over) {
    std::promise<void> loaded;
    for (std::size_t done = 0; done < count; done += kBatch) {
      const bool is_last = done + kBatch >= count;
      while (!thread_->post([=, &loaded](Engine& engine) {
        for (std::size_t i = done; i < std::min(done + kBatch, count); ++i) {
          const milliseconds at{over.count() * static_cast<std::int64_t>(i) /
                                static_cast<std::int64_t>(count)};
          ScheduleRequest request{.queue = queue, .due = WallTime{from + at}};
          request.payload.data = "\"" + std::string(100, 'x') + "\"";
          DETENT_CHECK(engine.schedule(std::move(request)).has_value());
        }
        if (!is_last) return;
        engine.after_commit([&loaded](const Result<void>& committed) {
          DETENT_CHECK(committed.has_value());
          loaded.set_value();
        });
      })) {
      }
    }
    loaded.get_future().wait();
  }

  /// A worker that leases and completes in a loop, on the engine's thread.
  void work(const std::string& queue, std::size_t max) {
    (void)thread_->post([=, this](Engine& engine) { lease(engine, queue, max); }, of(queue));
  }
  static EngineThread::QueueOf of(const std::string& queue) {
    return [queue](const Engine& /*engine*/) { return queue; };
  }
  void lease(Engine& engine, const std::string& queue, std::size_t max) {
    LeaseRequest request{.queue = queue, .max = max};
    engine.lease_or_wait(request, seconds{30}, [=, this](Result<std::vector<LeasedTask>> tasks) {
      if (!tasks || tasks->empty()) return;
      if (queue == "calm") note(*tasks);
      auto complete = [=, this, tasks = *std::move(tasks)](Engine& later) {
        for (const LeasedTask& task : tasks) {
          (void)later.complete(task.lease);
          later.hand_out_due();
        }
        lease(later, queue, max);
      };
      (void)thread_->post(std::move(complete), of(queue));
    });
  }
  void note(const std::vector<LeasedTask>& tasks) {
    const WallInstant now = clock_.wall_now();
    const MutexLock lock(mutex_);
    for (const LeasedTask& task : tasks) {
      DETENT_CHECK(now >= task.task.due_at);
      seen_.push_back({task.task.due_at - start_, now - task.task.due_at});
    }
  }

  SystemClock clock_;
  const std::size_t tasks_;
  WallTime start_{};
  Mutex mutex_;
  std::vector<Seen> seen_ DETENT_GUARDED_BY(mutex_);
  std::unique_ptr<EngineThread> thread_;
};

/// Returns the p99; infinity if no task was handed out.
double print(const char* when, const std::vector<Seen>& seen, milliseconds from, milliseconds to) {
  std::vector<double> lateness;
  for (const Seen& task : seen) {
    if (task.due >= from && task.due < to) lateness.push_back(task.lateness.count());
  }
  std::ranges::sort(lateness);
  if (lateness.empty()) {
    std::printf("  %-28s none was handed out\n", when);
    return std::numeric_limits<double>::infinity();
  }
  const auto quantile = [&lateness](double q) {
    return lateness[static_cast<std::size_t>(q * static_cast<double>(lateness.size() - 1))];
  };
  std::printf("  %-28s %6zu tasks: p50 %.2f  p99 %.2f  max %.2f\n", when, lateness.size(),
              quantile(0.5), quantile(0.99), quantile(1));
  return quantile(0.99);
}

int run(const std::vector<std::string>& arguments) {
  std::uint32_t tasks = 1'000'000;
  std::string server;
  std::string csv = "storm_bench.csv";
  if (!read_arguments(
          arguments, {},
          {{"--tasks", into(tasks)}, {"--server", into(server)}, {"--csv", into(csv)}})) {
    std::fputs("usage: storm_bench [--tasks 1m] [--server PROGRAM] [--csv FILE]\n", stderr);
    return 2;
  }
  Results results(csv);
  struct Run {
    const char* name;
    std::size_t tasks;
    int workers;
  };
  double calm = 0;  // p99 of that second in the first run
  for (const auto& [name, count, workers] :
       {Run{"calm", 0, 0}, Run{"no workers", tasks, 0}, Run{"workers", tasks, 8}}) {
    const TestFolder folder;
    const std::vector<Seen> seen = server.empty()
                                       ? Storm(count, folder / "data").run(workers)
                                       : storm_over_http(server, folder / "server", count, workers);
    std::printf("%zu tasks due in one second in another queue, %d workers for them\n", count,
                workers);
    print("before", seen, milliseconds{0}, kStormAfter);
    const double p99 = print("in that second", seen, kStormAfter, kStormAfter + kStormFor);
    if (count == 0) calm = p99;
    results.add({tasks, name, "p99 us", 1, p99 * 1e3});
    results.add({tasks, name, "p99 of calm", 1, p99 / calm});
    print("the ten seconds after", seen, kStormAfter + kStormFor, kCalmFor);
  }
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  try {
    return detent::bench::run({argv + 1, argv + argc});
  } catch (const detent::bench::ServerError& error) {
    std::fprintf(stderr, "storm_bench: %s\n", error.what());
    return 1;
  }
}
