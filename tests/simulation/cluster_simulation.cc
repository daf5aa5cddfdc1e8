#include "tests/simulation/cluster_simulation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fnv.h"
#include "base/rng.h"
#include "cluster/shard_map.h"
#include "detent/clock.h"
#include "tests/simulation/simulated_contract.h"
#include "tests/simulation/simulated_database.h"
#include "tests/simulation/simulated_node.h"

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint32_t kQueues = 12;
constexpr milliseconds kLongestDelay{20'000};
constexpr milliseconds kPatience{3'000};  // how long a client waits for an answer
constexpr std::chrono::hours kDrainFor{2};

class World {
 public:
  explicit World(const SimulationOptions& options)
      : options_(options),
        rng_(options.seed),
        database_(clock_, options.shards, options.lease),
        contract_(report_, options.wall_skew),
        stands_until_(options.nodes) {
    for (std::size_t i = 0; i < options.nodes; ++i) {
      const std::string name = "node-" + std::to_string(i);
      const auto skew =
          milliseconds(between(-options.wall_skew.count(), options.wall_skew.count()));
      nodes_.push_back(std::make_unique<SimulatedNode>(database_, contract_,
                                                       Member{name, name + ":1"}, rng_, options,
                                                       clock_.wall_now() + skew));
    }
    for (std::size_t i = 0; i < options.clients; ++i) after(milliseconds{0}, [this] { act(); });
    after(seconds{10}, [this] { fail_something(); });
  }

  SimulationReport run() {
    run_until(clock_.now() + options_.faults_for);
    heal();
    const MonotonicTime until = clock_.now() + kDrainFor;
    while (!is_done() && clock_.now() < until) run_until(clock_.now() + seconds{10});
    for (std::uint64_t number = 0; number < contract_.tasks().size(); ++number) {
      const DeliveryContract::Task& task = contract_.task(number);
      if (is_open(task)) contract_.violate(number, "lost");
    }
    report_.late_writes = database_.late_writes;
    report_.trace = trace_.value();
    return std::move(report_);
  }

 private:
  struct Event {
    MonotonicTime at;
    std::uint64_t number = 0;
    std::function<void()> happen;
    bool operator<(const Event& other) const noexcept {
      return std::tie(other.at, other.number) < std::tie(at, number);
    }
  };

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(rng_.unit() * static_cast<double>(most - least + 1));
  }
  bool one_in(std::uint32_t chances) { return rng_.below(chances) == 0; }

  void after(nanoseconds delay, std::function<void()> happen) {
    events_.push({clock_.now() + delay, ++last_event_, std::move(happen)});
  }
  void trace(std::string_view what, std::uint64_t number) {
    trace_.bytes(what);
    trace_.bytes(std::to_string(number) + "@" +
                 std::to_string(clock_.now().time_since_epoch().count()));
  }

  bool can_run(std::size_t node) const {
    return nodes_[node]->is_up() && stands_until_[node] <= clock_.now();
  }
  void run_until(MonotonicTime end) {
    while (clock_.now() < end) {
      nanoseconds next = end - clock_.now();
      if (!events_.empty()) next = std::min(next, nanoseconds(events_.top().at - clock_.now()));
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->is_up()) next = std::min(next, when(i));
      }
      advance(std::max(next, nanoseconds{0}));
      while (!events_.empty() && events_.top().at <= clock_.now()) {
        const std::function<void()> happen = events_.top().happen;
        events_.pop();
        happen();
      }
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (can_run(i) && nodes_[i]->until_next() == nanoseconds{0}) nodes_[i]->run();
      }
    }
  }
  nanoseconds when(std::size_t node) const {
    return std::max(nodes_[node]->until_next(), nanoseconds(stands_until_[node] - clock_.now()));
  }
  void advance(nanoseconds by) {
    if (by == nanoseconds{0}) return;
    clock_.advance(by);
    for (const auto& node : nodes_) node->advance(by);
  }

  // ---- messages

  nanoseconds delay() {
    if (is_healed_) return milliseconds{1};
    return one_in(50) ? milliseconds(between(0, 5'000)) : milliseconds(between(0, 20));
  }
  /// Delivers a message to a node or a client. It may be late, or come twice, or get lost.
  void carry(const std::function<void()>& arrive) {
    const bool is_lost = !is_healed_ && one_in(50);
    const bool comes_twice = !is_healed_ && one_in(50);
    if (!is_lost) after(delay(), arrive);
    if (comes_twice) after(delay(), arrive);
  }
  /// Sends a request to a random node. The node carries it out if it can. A paused node does so
  /// later.
  void ask(const std::function<void(SimulatedNode&)>& request) {
    const std::size_t node = rng_.below(static_cast<std::uint32_t>(nodes_.size()));
    carry([this, node, request] { arrive(node, request); });
  }
  void arrive(std::size_t node, const std::function<void(SimulatedNode&)>& request) {
    if (!nodes_[node]->is_up()) return;
    if (can_run(node)) return request(*nodes_[node]);
    after(stands_until_[node] - clock_.now(), [this, node, request] { arrive(node, request); });
  }
  /// Sends a request to the owner of a shard. A real node would pass the request on. Here the
  /// request goes to all nodes, because at most one of them knows for sure that it owns the shard.
  void ask_owner(const std::function<void(SimulatedNode&)>& request) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      carry([this, i, request] { arrive(i, request); });
    }
  }

  // ---- clients

  void act() {
    if (is_healed_) {
      drain();
      return after(milliseconds{500}, [this] { act(); });
    }
    if (one_in(2)) {
      schedule_one();
    } else {
      lease_some();
    }
    after(milliseconds(between(20, 800)), [this] { act(); });
  }

  static std::string queue_name(std::uint32_t number) { return "q" + std::to_string(number); }

  void schedule_one() {
    const milliseconds wait{one_in(3) ? 0 : between(0, kLongestDelay.count())};
    send_schedule(contract_.ask(queue_name(rng_.below(kQueues)), wait, clock_.now()));
  }
  /// Sends the request again and again, with the key of the task, until an answer comes.
  void send_schedule(std::uint64_t number) {
    const DeliveryContract::Task& task = contract_.task(number);
    if (task.is_accepted) return;
    ScheduleRequest request{.queue = task.queue,
                            .payload = {.data = std::to_string(number)},
                            .rules = {.max_attempts = 1'000'000},
                            .due = task.delay,
                            .key = "k" + std::to_string(number)};
    ask_owner([this, number, request](SimulatedNode& node) {
      node.serve(
          shard_of_queue(request.queue, options_.shards),
          [&](Engine& engine) { return engine.schedule(request); },
          [this, number](const ShardLease&, const Result<TaskSnapshot>& result) {
            if (!result) return;
            trace("accepted", number);
            const TaskId id = result->task.id;
            carry([this, number, id] { accepted(number, id); });
          },
          [](bool) {});
    });
    after(kPatience, [this, number] { send_schedule(number); });
  }
  void accepted(std::uint64_t number, TaskId id) {
    contract_.accepted(number, id);
    if (one_in(15)) cancel(number);
  }

  void cancel(std::uint64_t number) {
    ask_owner([this, number, id = contract_.task(number).id](SimulatedNode& node) {
      node.serve(
          shard_of_task(id), [id](Engine& engine) { return engine.cancel(id); },
          [this, number](const ShardLease&, const Result<void>& result) {
            if (result) end(number, "cancelled");
          },
          [this, number](bool may_be) { note_doubt(number, may_be); });
    });
  }
  void note_doubt(std::uint64_t number, bool may_be_over) {
    if (may_be_over) contract_.task(number).may_be_over = true;
  }
  void end(std::uint64_t number, std::string_view how) {
    trace(how, number);
    DeliveryContract::Task& task = contract_.task(number);
    if (how == "completed" && !task.is_over) ++report_.completed;
    task.is_over = true;
    task.lease.reset();
  }

  void lease_some() {
    const std::string queue = queue_name(rng_.below(kQueues));
    const LeaseRequest request{.queue = queue,
                               .max = 1 + rng_.below(3),
                               .visibility_timeout = kSimulatedVisibility,
                               .worker = {}};
    // Each message leases once: if the message arrives twice, it leases twice.
    ask_owner([this, request](SimulatedNode& node) {
      node.serve(
          shard_of_queue(request.queue, options_.shards),
          [&](Engine& engine) { return engine.lease(request); },
          [this, &node](const ShardLease& by, const Result<std::vector<LeasedTask>>& result) {
            if (result) hand_out(node, by, *result);
          },
          [](bool) {});
    });
  }
  void hand_out(const SimulatedNode& node, const ShardLease& by,
                const std::vector<LeasedTask>& tasks) {
    for (const LeasedTask& leased : tasks) {
      const std::uint64_t number = std::stoull(leased.task.payload.data);
      trace("handed out", number);
      contract_.handed_out(leased, by, node.wall_now(), clock_.now());
      carry([this, number, lease = leased.lease] { work_on(number, lease); });
    }
  }

  void work_on(std::uint64_t number, LeaseToken lease) {
    const std::uint32_t what = is_healed_ ? 0 : rng_.below(10);
    if (what == 9) return;  // the client forgets the task
    after(milliseconds(between(0, is_healed_ ? 100 : 4'000)), [this, number, lease, what] {
      if (what == 8) return fail(number, lease);
      complete(number, lease);
    });
  }
  void complete(std::uint64_t number, LeaseToken lease) {
    ask_owner([this, number, lease](SimulatedNode& node) {
      node.serve(
          shard_of_lease(lease), [lease](Engine& engine) { return engine.complete(lease); },
          [this, number](const ShardLease&, const Result<LeaseOutcome>& result) {
            if (result && *result == LeaseOutcome::done) end(number, "completed");
          },
          [this, number](bool may_be) { note_doubt(number, may_be); });
    });
  }
  void fail(std::uint64_t number, LeaseToken lease) {
    const FailRequest request{
        .lease = lease, .delay = milliseconds(between(0, 5'000)), .error = "x"};
    ask_owner([this, number, request](SimulatedNode& node) {
      node.serve(
          shard_of_lease(request.lease), [&](Engine& engine) { return engine.fail(request); },
          [this, number](const ShardLease&, const Result<LeaseOutcome>& result) {
            if (!result || *result == LeaseOutcome::conflict) return;
            trace("failed", number);
            contract_.task(number).lease.reset();
          },
          [this, number](bool may_be) {
            if (may_be && contract_.task(number).lease)
              contract_.task(number).lease->is_void = true;
          });
    });
  }

  // ---- the end

  static bool is_open(const DeliveryContract::Task& task) {
    return !task.is_accepted || (!task.is_over && !task.may_be_over);
  }
  bool is_done() {
    if (std::ranges::any_of(contract_.tasks(), is_open)) return false;
    for (ShardNumber shard = 0; shard < options_.shards; ++shard) {
      const std::vector<QueueRecord> queues = database_.store(shard).queues().value();
      const auto has_tasks = [](const QueueRecord& queue) { return queue.waiting > 0; };
      if (std::ranges::any_of(queues, has_tasks)) return false;
    }
    return true;
  }
  void drain() {
    for (std::uint32_t i = 0; i < 3; ++i) lease_some();
  }

  // ---- faults

  void fail_something() {
    if (is_healed_) return;
    ++report_.faults;
    const std::size_t number = rng_.below(static_cast<std::uint32_t>(nodes_.size()));
    SimulatedNode& node = *nodes_[number];
    const milliseconds length(between(100, 4 * options_.lease.count()));
    const std::uint32_t what = rng_.below(5);
    trace("fault", what * 100 + number);
    if (what == 0 && node.is_up()) {
      node.kill();
      after(length, [&node] { node.start(); });
    } else if (what == 1) {
      stands_until_[number] = clock_.now() + length;
    } else if (what == 2) {
      node.connection().set_cut(true);
      after(length, [&node] { node.connection().set_cut(false); });
    } else if (what == 3) {
      node.connection().set_losses(20);
      after(length, [&node] { node.connection().set_losses(0); });
    } else if (node.is_up()) {
      retire(node);
    }
    after(milliseconds(between(500, 15'000)), [this] { fail_something(); });
  }
  /// Stops a node gracefully, and starts it again later.
  void retire(SimulatedNode& node) {
    node.retire();
    after(seconds{12}, [&node] {
      if (node.is_up()) node.kill();
      node.start();
    });
  }
  void heal() {
    is_healed_ = true;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i]->connection().set_cut(false);
      nodes_[i]->connection().set_losses(0);
      stands_until_[i] = clock_.now();
      if (!nodes_[i]->is_up()) nodes_[i]->start();
    }
  }

  const SimulationOptions options_;
  Rng rng_;
  ManualClock clock_;  // true time, also the time of the database
  SimulatedDatabase database_;
  SimulationReport report_;
  DeliveryContract contract_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;
  std::vector<MonotonicTime> stands_until_;
  std::priority_queue<Event> events_;
  std::uint64_t last_event_ = 0;
  bool is_healed_ = false;
  Fnv1a trace_;
};

}  // namespace

SimulationReport simulate_cluster(const SimulationOptions& options) { return World(options).run(); }

}  // namespace detent
