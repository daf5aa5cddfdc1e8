#include "tests/simulation/cluster_simulation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint32_t kQueues = 12;
constexpr milliseconds kLongestDelay{20'000};
constexpr milliseconds kVisibility{8'000};
constexpr milliseconds kPatience{3'000};  // of a client that waits for an answer
constexpr double kMostDrift = 500e-6;     // of a node's clock
constexpr int kDriftPart = 900;  // two of them come apart by less than this part of the time
constexpr std::chrono::hours kDrainFor{2};

// ---- what the clients were told -----------------------------------------------------------------

/// Holds the answers that go out against the delivery contract.
class Contract {
 public:
  Contract(SimulationReport& report, milliseconds skew) : report_(report), skew_(skew) {}

  struct Task {
    TaskId id;
    std::string queue;
    MonotonicTime asked_at;  // true time
    milliseconds delay{0};
    bool is_accepted = false;
    bool is_over = false;      // completed or cancelled, and that was answered
    bool may_be_over = false;  // asked for, and the answer did not go out
    struct OpenLease {
      LeaseToken token;
      ShardLease kept_by;   // the engine that has it
      MonotonicTime until;  // true time
      WallTime due_at{};
      bool is_written = false;  // that engine has written it out, and gone
      bool is_void = false;     // a fault has ended it
    };
    std::optional<OpenLease> lease = {};
  };

  std::uint64_t ask(std::string queue, milliseconds delay, MonotonicTime now) {
    tasks_.push_back({.id = {}, .queue = std::move(queue), .asked_at = now, .delay = delay});
    return tasks_.size() - 1;
  }
  Task& task(std::uint64_t number) { return tasks_.at(number); }
  const std::vector<Task>& tasks() const noexcept { return tasks_; }

  void accepted(std::uint64_t number, TaskId id) {
    Task& task = tasks_.at(number);
    if (task.is_accepted && task.id != id) violate(number, "accepted twice, under two ids");
    if (!task.is_accepted) ++report_.scheduled;
    task.is_accepted = true;
    task.id = id;
  }

  void handed_out(const LeasedTask& leased, const ShardLease& by, WallTime node_wall,
                  MonotonicTime now) {
    ++report_.handed_out;
    const std::uint64_t number = std::stoull(leased.task.payload.data);
    Task& task = tasks_.at(number);
    if (task.is_over) violate(number, "handed out after its end");
    if (node_wall < leased.task.due_at) violate(number, "handed out early by the node's clock");
    // Two nodes' clocks, set apart and drifting apart.
    const auto drift = (now - MonotonicTime{}) / kDriftPart;
    const auto slack = 2 * skew_ + std::chrono::ceil<milliseconds>(drift) + milliseconds{2};
    if (now - task.asked_at < task.delay - slack) violate(number, "handed out early");
    if (task.lease && task.lease->until > now) {
      if (!task.lease->is_void) violate(number, "handed out while its lease is open");
      ++report_.duplicates;
    }
    // Measured by the node's clock, which may be fast.
    task.lease = {.token = leased.lease,
                  .kept_by = by,
                  .until = now + kVisibility - kVisibility / 500,
                  .due_at = leased.task.due_at};
  }

  /// The engine that had these leases has gone; `is_kept`: it wrote them out.
  void engine_gone(const ShardLease& engine, bool is_kept) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by != engine) continue;
      (is_kept ? task.lease->is_written : task.lease->is_void) = true;
    }
  }
  /// It takes up what the engine of the epoch before it has written out, where the task is due by
  /// its own clock; other leases are void.
  void engine_opened(const ShardLease& engine, WallTime node_wall) {
    for (Task& task : tasks_) {
      if (!task.lease || task.lease->kept_by.shard != engine.shard) continue;
      const bool is_next = task.lease->kept_by.epoch + 1 == engine.epoch;
      if (task.lease->is_written && is_next && task.lease->due_at <= node_wall) {
        task.lease->kept_by = engine;
        task.lease->until -= 2 * skew_;  // it was written out as a date
        task.lease->is_written = false;
      } else {
        task.lease->is_void = true;
      }
    }
  }

  void violate(std::uint64_t number, const std::string& what) {
    report_.violations.push_back("task " + std::to_string(number) + ": " + what);
  }

 private:
  SimulationReport& report_;
  const milliseconds skew_;  // of a node's clock at the start, at most
  std::vector<Task> tasks_;
};

// ---- a node -------------------------------------------------------------------------------------

class Node final : public ShardHost {
 public:
  Node(SimulatedDatabase& database, Contract& contract, Member me, Rng& rng,
       const SimulationOptions& options, WallInstant wall)
      : contract_(contract),
        me_(std::move(me)),
        rng_(rng),
        clock_(wall),
        rate_(1 + kMostDrift * (2 * rng.unit() - 1)),
        answers_before_commit_(options.answers_before_commit),
        forgets_leases_(options.forgets_leases),
        connection_(database, rng.next()),
        leases_(connection_) {
    start();
  }

  void start() {
    keeper_ = std::make_unique<ShardKeeper>(leases_, *this, clock_, me_, rng_.next());
  }
  /// It dies, with all that it had in memory.
  void kill() {
    for (const auto& [shard, served] : served_) contract_.engine_gone(served.lease, false);
    served_.clear();
    keeper_.reset();
  }
  bool is_up() const noexcept { return keeper_ != nullptr; }
  Connection& connection() noexcept { return connection_; }
  void retire() { keeper_->retire(); }
  bool has_left() const { return keeper_->is_empty(); }

  void advance(nanoseconds by) {
    elapsed_ += by;
    const nanoseconds shown(
        static_cast<std::int64_t>(static_cast<double>(elapsed_.count()) * rate_));
    clock_.advance(shown - (clock_.now() - MonotonicTime{}));
  }
  WallTime wall_now() const { return std::chrono::floor<milliseconds>(clock_.wall_now()); }
  /// How long, in true time, until it has something to do.
  nanoseconds until_next() const {
    MonotonicTime next = keeper_->next_step();
    for (const auto& [shard, served] : served_) {
      if (!served.engine) continue;
      if (const auto wakeup = served.engine->next_wakeup()) next = std::min(next, *wakeup);
    }
    const nanoseconds left = next - clock_.now();
    if (left <= nanoseconds{0}) return nanoseconds{0};
    return nanoseconds(static_cast<std::int64_t>(static_cast<double>(left.count()) / rate_) + 1);
  }
  /// The keeper and the engines are on threads of their own, so either may be first.
  void run() {
    const bool is_keeper_first = rng_.below(2) == 0;
    if (is_keeper_first) step_keeper();
    run_engines();
    if (!is_keeper_first) step_keeper();
  }
  void step_keeper() {
    if (keeper_->next_step() <= clock_.now()) static_cast<void>(keeper_->step());
  }
  void run_engines() {
    for (auto& [shard, served] : served_) {
      if (!served.engine) continue;
      const auto wakeup = served.engine->next_wakeup();
      if (wakeup && *wakeup <= clock_.now()) turn(served);
    }
  }

  /// Has `verb` carried out by the engine of a shard, and `answer` told, once it is durable, if the
  /// shard is this node's for sure; else `refuse`, with whether it may have been carried out.
  template <class Verb, class Answer, class Refuse>
  void serve(ShardNumber shard, Verb verb, Answer answer, Refuse refuse) {
    const auto it = served_.find(shard);
    if (it == served_.end() || !it->second.engine || !is_sure_of(shard)) return refuse(false);
    Served& served = it->second;
    served.engine->notice_clock();
    auto result = verb(*served.engine);
    if (answers_before_commit_) {
      answer(served.lease, result);
      return turn(served);
    }
    served.engine->after_commit([this, shard, lease = served.lease, result = std::move(result),
                                 answer, refuse](const Result<void>& committed) mutable {
      if (!committed || !is_sure_of(shard)) return refuse(true);
      answer(lease, result);
    });
    turn(served);
  }

  // The host of the keeper.
  void open(const ShardLease& lease) override {
    Served& served = served_[lease.shard];
    served = {.lease = lease, .store = std::make_unique<ConnectedStore>(connection_, lease)};
    auto engine = Engine::open(*served.store, clock_,
                               {.window = seconds{10},
                                .max_loaded = 64,
                                .keep_leases = true,
                                .shard = lease.shard,
                                .seed = rng_.next()});
    if (!engine) return;  // is_closed() from now on
    served.engine = std::move(*engine);
    contract_.engine_opened(lease, wall_now());
  }
  void close(ShardNumber shard) override {
    Served& served = served_.at(shard);
    if (!served.engine) return;
    const bool is_kept = forgets_leases_ || served.engine->close().has_value();
    served.engine.reset();
    contract_.engine_gone(served.lease, is_kept);
  }
  bool is_closed(ShardNumber shard) override { return !served_.at(shard).engine; }
  void drop(ShardNumber shard) override {
    const auto it = served_.find(shard);
    if (it->second.engine) {
      contract_.engine_gone(it->second.lease, false);
      static_cast<void>(it->second.engine->close());  // in vain
    }
    served_.erase(it);
  }

 private:
  struct Served {
    ShardLease lease;
    std::unique_ptr<ConnectedStore> store;
    std::unique_ptr<Engine> engine = nullptr;  // none: closed, or it could not be opened
  };

  bool is_sure_of(ShardNumber shard) const {
    const auto until = keeper_->held_until(shard);
    return until && clock_.now() < *until;
  }
  void turn(Served& served) {
    if (served.engine->turn()) return;
    contract_.engine_gone(served.lease, false);
    served.engine.reset();
  }

  Contract& contract_;
  const Member me_;
  Rng& rng_;
  ManualClock clock_;
  const double rate_;
  nanoseconds elapsed_{0};  // true time
  const bool answers_before_commit_;
  const bool forgets_leases_;
  Connection connection_;
  ConnectedLeases leases_;
  std::map<ShardNumber, Served> served_;
  std::unique_ptr<ShardKeeper> keeper_;  // none: it is down
};

// ---- the world ----------------------------------------------------------------------------------

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
      nodes_.push_back(std::make_unique<Node>(database_, contract_, Member{name, name + ":1"}, rng_,
                                              options, clock_.wall_now() + skew));
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
      const Contract::Task& task = contract_.task(number);
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
  /// Brings something to a node, or to a client; perhaps late, twice or never.
  void carry(const std::function<void()>& arrive) {
    const bool is_lost = !is_healed_ && one_in(50);
    const bool comes_twice = !is_healed_ && one_in(50);
    if (!is_lost) after(delay(), arrive);
    if (comes_twice) after(delay(), arrive);
  }
  /// A request to some node, which has it carried out if it can; one that stands still, later.
  void ask(const std::function<void(Node&)>& request) {
    const std::size_t node = rng_.below(static_cast<std::uint32_t>(nodes_.size()));
    carry([this, node, request] { arrive(node, request); });
  }
  void arrive(std::size_t node, const std::function<void(Node&)>& request) {
    if (!nodes_[node]->is_up()) return;
    if (can_run(node)) return request(*nodes_[node]);
    after(stands_until_[node] - clock_.now(), [this, node, request] { arrive(node, request); });
  }
  /// Passed on to the owner by whoever was asked: here simply asked of all, of whom one at most
  /// serves the shard for sure.
  void ask_owner(const std::function<void(Node&)>& request) {
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
  /// Again and again, under the task's key, until it is answered.
  void send_schedule(std::uint64_t number) {
    const Contract::Task& task = contract_.task(number);
    if (task.is_accepted) return;
    ScheduleRequest request{.queue = task.queue,
                            .payload = {.data = std::to_string(number)},
                            .rules = {.max_attempts = 1'000'000},
                            .due = task.delay,
                            .key = "k" + std::to_string(number)};
    ask_owner([this, number, request](Node& node) {
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
    ask_owner([this, number, id = contract_.task(number).id](Node& node) {
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
    Contract::Task& task = contract_.task(number);
    if (how == "completed" && !task.is_over) ++report_.completed;
    task.is_over = true;
    task.lease.reset();
  }

  void lease_some() {
    const std::string queue = queue_name(rng_.below(kQueues));
    const LeaseRequest request{
        .queue = queue, .max = 1 + rng_.below(3), .visibility_timeout = kVisibility, .worker = {}};
    // One message, one hand-out: who takes it twice is served twice.
    ask_owner([this, request](Node& node) {
      node.serve(
          shard_of_queue(request.queue, options_.shards),
          [&](Engine& engine) { return engine.lease(request); },
          [this, &node](const ShardLease& by, const Result<std::vector<LeasedTask>>& result) {
            if (result) hand_out(node, by, *result);
          },
          [](bool) {});
    });
  }
  void hand_out(const Node& node, const ShardLease& by, const std::vector<LeasedTask>& tasks) {
    for (const LeasedTask& leased : tasks) {
      const std::uint64_t number = std::stoull(leased.task.payload.data);
      trace("handed out", number);
      contract_.handed_out(leased, by, node.wall_now(), clock_.now());
      carry([this, number, lease = leased.lease] { work_on(number, lease); });
    }
  }

  void work_on(std::uint64_t number, LeaseToken lease) {
    const std::uint32_t what = is_healed_ ? 0 : rng_.below(10);
    if (what == 9) return;  // forgotten
    after(milliseconds(between(0, is_healed_ ? 100 : 4'000)), [this, number, lease, what] {
      if (what == 8) return fail(number, lease);
      complete(number, lease);
    });
  }
  void complete(std::uint64_t number, LeaseToken lease) {
    ask_owner([this, number, lease](Node& node) {
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
    ask_owner([this, number, request](Node& node) {
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

  static bool is_open(const Contract::Task& task) {
    return !task.is_accepted || (!task.is_over && !task.may_be_over);
  }
  bool is_done() {
    if (std::ranges::any_of(contract_.tasks(), is_open)) return false;
    for (ShardNumber shard = 0; shard < options_.shards; ++shard) {
      for (const QueueRecord& queue : database_.store(shard).queues().value()) {
        if (queue.waiting > 0) return false;
      }
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
    Node& node = *nodes_[number];
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
  /// It stops as it should, and comes back later.
  void retire(Node& node) {
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
  ManualClock clock_;  // true time, and the database's
  SimulatedDatabase database_;
  SimulationReport report_;
  Contract contract_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<MonotonicTime> stands_until_;
  std::priority_queue<Event> events_;
  std::uint64_t last_event_ = 0;
  bool is_healed_ = false;
  Fnv1a trace_;
};

}  // namespace

SimulationReport simulate_cluster(const SimulationOptions& options) { return World(options).run(); }

}  // namespace detent
