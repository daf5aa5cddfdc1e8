#include "tests/durability/kill_run.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "detent/clock.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using Number = DeliveryHistory::Number;
using Scope = DeliveryHistory::Scope;

constexpr int kClients = 4;
constexpr milliseconds kFar = std::chrono::hours{1};
/// Longer than a test, so that no lease expires.
constexpr milliseconds kLeaseTime = std::chrono::minutes{30};
constexpr std::size_t kBatch = 20;
const std::string kNearQueue = "near";
const std::string kFarQueue = "far";

WallTime wall_now() { return std::chrono::floor<milliseconds>(SystemClock().wall_now()); }

}  // namespace

/// Counts the calls of all clients, and rings when the server should be killed.
struct CallCount {
  std::uint32_t kill_at = 0;
  std::atomic<std::uint32_t> calls =
      0;  // all clients add to it; relaxed, because an exact order is not needed
  Doorbell time_to_kill;

  void add() {
    if (calls.fetch_add(1, std::memory_order_relaxed) + 1 == kill_at) time_to_kill.ring();
  }
};

class KillRun::Load {
 public:
  Load(std::uint64_t seed, KillRun& run, CallCount& count)
      : rng_(seed),
        client_(test::client_of(run.server_.url())),
        history_(run.history_),
        stale_(run.stale_),
        count_(count) {}

  void run() {
    while (!is_gone_) {
      count_.add();
      if (one_in(20)) try_stale_lease();
      const std::uint32_t choice = rng_.below(10);
      if (choice < 3) {
        schedule();
      } else if (choice < 4) {
        schedule_batch();
      } else if (choice < 5) {
        cancel();
      } else {
        lease();
      }
    }
    count_.time_to_kill.ring();  // needed if the server has ended by itself
  }

 private:
  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }

  /// Returns true if the call succeeded. If the server is gone, the outcome of the call is unknown,
  /// and this client ends.
  template <class T>
  bool is_answered(const ClientResult<T>& answer, const char* what) {
    if (answer) return true;
    if (answer.error().code == ClientError::Code::unavailable) {
      is_gone_ = true;
    } else {
      history_.find(std::string(what) + ": " + answer.error().message);
    }
    return false;
  }

  /// Returns a task that is due in an hour (one in ten), immediately, or soon. Some tasks have only
  /// one attempt.
  std::pair<Number, client::NewTask> any_task() {
    const bool is_far = one_in(10);
    const milliseconds delay = is_far ? kFar : milliseconds{one_in(3) ? 0 : rng_.below(400)};
    const std::uint32_t max_attempts = 1 + rng_.below(20);
    const Number number = history_.asked(wall_now() + delay, max_attempts);
    client::NewTask task{.queue = is_far ? kFarQueue : kNearQueue, .due = delay};
    task.payload.data = std::to_string(number);
    task.max_attempts = max_attempts;
    return {number, std::move(task)};
  }

  void schedule() {
    const auto [number, wanted] = any_task();
    const auto task = client_.schedule(wanted);
    if (is_answered(task, "schedule")) history_.accepted(number, task->id, task->due_at);
  }

  void schedule_batch() {
    std::vector<Number> numbers;
    std::vector<client::NewTask> batch;
    for (std::size_t i = 0; i < kBatch; ++i) {
      auto [number, task] = any_task();
      numbers.push_back(number);
      batch.push_back(std::move(task));
    }
    const auto tasks = client_.schedule_many(batch);
    if (!is_answered(tasks, "batch")) return;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto& task = tasks->at(i);
      if (is_answered(task, "batch")) history_.accepted(numbers[i], task->id, task->due_at);
    }
  }

  void cancel() {
    const auto number = history_.any_live(rng_);
    if (!number) return;
    history_.asked_cancel(*number);
    const auto answer = client_.cancel(history_.id_of(*number));
    if (!answer && answer.error().code == ClientError::Code::unavailable) {
      is_gone_ = true;
    } else {
      history_.cancelled(*number, answer);
    }
  }

  /// Uses a lease from before the kill. Other clients may hold valid leases of the same tasks.
  void try_stale_lease() {
    if (stale_.empty()) return;
    const std::string& lease = stale_[rng_.below(static_cast<std::uint32_t>(stale_.size()))];
    const auto outcomes = client_.complete(std::vector{lease});
    if (!is_answered(outcomes, "stale lease")) return;
    if (outcomes->front() != client::LeaseStatus::conflict)
      history_.find("a stale lease was accepted");
  }

  void lease() {
    const auto tasks =
        client_.lease(kNearQueue, {.max = 1 + rng_.below(20), .visibility_timeout = kLeaseTime});
    if (!is_answered(tasks, "lease")) return;
    std::vector<client::LeasedTask> to_complete;
    std::vector<client::LeasedTask> to_fail;
    for (const client::LeasedTask& task : *tasks) {
      history_.delivered(task, wall_now());
      if (one_in(10)) continue;  // keeps the lease until the kill
      (one_in(3) ? to_fail : to_complete).push_back(task);
    }
    if (!to_complete.empty()) complete(to_complete);
    if (!to_fail.empty() && !is_gone_) fail(to_fail);
  }

  static std::vector<std::string> leases_of(const std::vector<client::LeasedTask>& tasks) {
    std::vector<std::string> leases;
    for (const client::LeasedTask& task : tasks) leases.push_back(task.lease);
    return leases;
  }
  static Number number_of(const client::LeasedTask& task) { return std::stoull(task.payload.data); }

  void complete(const std::vector<client::LeasedTask>& tasks) {
    for (const auto& task : tasks) history_.asked_complete(number_of(task));
    const auto outcomes = ClientInternals::of(client_).call_leases(leases_of(tasks), complete_call);
    if (!is_answered(outcomes, "complete")) return;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& outcome = outcomes->at(i);
      if (is_answered(outcome, "complete")) history_.completed(number_of(tasks[i]), *outcome);
    }
  }

  void fail(const std::vector<client::LeasedTask>& tasks) {
    const milliseconds delay{rng_.below(200)};
    for (const auto& task : tasks) history_.asked_fail(number_of(task), wall_now() + delay);
    const auto fail = [delay](Leases leases) {
      return fail_call(leases, {.error = "try again", .delay = delay});
    };
    const auto outcomes = ClientInternals::of(client_).call_leases(leases_of(tasks), fail);
    if (!is_answered(outcomes, "fail")) return;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& outcome = outcomes->at(i);
      if (!is_answered(outcome, "fail")) continue;
      history_.failed(number_of(tasks[i]), tasks[i].lease, *outcome);
    }
  }

  Rng rng_;
  Client client_;
  DeliveryHistory& history_;
  const std::vector<std::string>& stale_;
  CallCount& count_;
  bool is_gone_ = false;
};

KillRun::KillRun(std::uint64_t seed, const std::string& program)
    : rng_(seed), server_({.program = program, .data = folder_ / "data"}) {
  const auto started = server_.start();
  if (!started) history_.find(started.error().message);
}

void KillRun::kill(int times) {
  for (int i = 0; i < times && history_.findings().empty(); ++i) {
    work_until_killed();
    restart();
  }
}

void KillRun::work_until_killed() {
  CallCount count;
  count.kill_at = 10 + rng_.below(400);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([this, &count, seed = rng_.next()] { Load(seed, *this, count).run(); });
  }
  SystemClock().wait(count.time_to_kill, std::nullopt);
  if (!server_.is_running()) history_.find("the server crashed: " + server_.log());
  server_.kill();
  for (std::thread& client : clients) client.join();
  stale_ = history_.killed();
  ++kills_;
}

void KillRun::restart() {
  while (rng_.below(3) == 0) {  // kills it during the start
    if (!server_.spawn()) break;
    (void)server_.await_ready(milliseconds{rng_.below(60)});
    server_.kill();
    ++kills_;
  }
  const auto started = server_.start();
  if (!started) return history_.find("no restart: " + started.error().message);
  check_stale(stale_);
  look(Scope::changed);
}

void KillRun::check_stale(const std::vector<std::string>& leases) {
  if (leases.empty()) return;
  Client client = test::client_of(server_.url());
  const auto outcomes = client.complete(leases);
  if (!outcomes) return history_.find("stale leases: " + outcomes.error().message);
  for (const auto outcome : *outcomes) {
    if (outcome != client::LeaseStatus::conflict) history_.find("a stale lease was accepted");
  }
}

void KillRun::look(Scope scope) {
  Client client = test::client_of(server_.url());
  history_.look([&client](std::uint64_t id) { return client.get(id); }, scope);
  // The server's counts may include tasks whose creation was never acknowledged.
  const auto queues = client.queues();
  if (!queues) return history_.find("no queues: " + queues.error().message);
  std::size_t counted = 0;
  for (const client::Queue& queue : *queues) {
    counted += queue.scheduled + queue.ready + queue.leased + queue.dead;
  }
  const std::size_t least = history_.present();
  if (counted < least || counted > least + history_.in_doubt()) {
    history_.find("the server counts " + std::to_string(counted) + " tasks, not " +
                  std::to_string(least));
  }
}

void KillRun::kill_and_roll_back() {
  namespace fs = std::filesystem;
  server_.kill();
  stale_ = history_.killed();
  fs::copy(folder_ / "data", folder_ / "old", fs::copy_options::recursive);
  const auto started = server_.start();
  if (!started) return history_.find(started.error().message);
  work_until_killed();
  fs::remove_all(folder_ / "data");
  fs::rename(folder_ / "old", folder_ / "data");
  restart();
}

void KillRun::drain() {
  Client client = test::client_of(server_.url());
  while (history_.findings().empty()) {
    // All tasks of the near queue are due within a second. If a wait returns no task, all are done.
    const auto tasks = client.lease(kNearQueue, {.max = 1'000, .wait = milliseconds{1'000}});
    if (!tasks) return history_.find("drain: " + tasks.error().message);
    if (tasks->empty()) break;
    std::vector<std::string> leases;
    for (const auto& task : *tasks) {
      history_.delivered(task, wall_now());
      if (!history_.findings().empty()) return;
      history_.asked_complete(std::stoull(task.payload.data));
      leases.push_back(task.lease);
    }
    const auto outcomes = client.complete(leases);
    if (!outcomes) return history_.find("drain: " + outcomes.error().message);
    for (std::size_t i = 0; i < leases.size(); ++i) {
      history_.completed(std::stoull(tasks->at(i).payload.data), outcomes->at(i));
    }
  }
  look(Scope::all);
  const auto queues = client.queues();
  if (!queues) return history_.find("no queues: " + queues.error().message);
  for (const client::Queue& queue : *queues) {
    if (queue.name != kNearQueue) continue;
    if (queue.scheduled + queue.ready + queue.leased > 0) {
      history_.find("tasks that are due are not handed out");
    }
  }
}

}  // namespace detent
