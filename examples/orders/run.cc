#include "examples/orders/run.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "client/client_values.h"
#include "detent/clock.h"
#include "examples/orders/ledger.h"
#include "examples/orders/loader.h"
#include "examples/orders/server_process.h"
#include "examples/orders/worker.h"

namespace orders {
namespace {

using detent::Client;
using detent::Error;
using detent::ErrorCode;
using detent::Result;
using detent::to_result;
using detent::WallTime;
using std::chrono::milliseconds;

/// The time limit for completing the orders that are due at the end of the run.
constexpr std::chrono::seconds kSettleTime{60};

/// A folder that is removed after the run.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "orders-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

class Run {
 public:
  Run(const std::vector<Order>& orders, const RunOptions& options)
      : orders_(orders),
        options_(options),
        ledger_(orders.size()),
        server_(options.server, folder_.path() + "/data") {}

  Result<bool> play() {
    if (folder_.path().empty()) {
      return Error{ErrorCode::internal, "cannot make a temporary folder in " +
                                            std::filesystem::temp_directory_path().string()};
    }
    TRY(server_.start());
    std::printf("server at %s\n", server_.url().c_str());
    start_ = wall_now();
    end_ = start_ + std::chrono::seconds{options_.seconds};
    if (!orders_.empty()) end_ = std::max(end_, start_ + orders_.back().created);
    start_workers();
    TRY(load_and_kill());
    settle();
    workers_.clear();
    ASSIGN_OR_RETURN(const Remainder remainder, ask_for_the_rest());
    const int status = server_.stop();
    return account(remainder) && expect(status == 0, "the server stopped with exit status 0");
  }

 private:
  WallTime wall_now() const { return std::chrono::floor<milliseconds>(clock_.wall_now()); }
  void wait_until(WallTime at) {
    detent::Doorbell nobody_rings;
    (void)clock_.wait(nobody_rings, clock_.now() + (at - wall_now()));
  }

  void start_workers() {
    std::set<std::string> queues;
    for (const Order& order : orders_) queues.insert(order.queue);
    for (const std::string& queue : queues) {
      workers_.push_back(std::make_unique<Worker>(server_.url(), queue, clock_, ledger_));
    }
  }

  /// Kills the server between two batches, spread evenly over the run. Workers work during a kill,
  /// but no batch is in flight, because its outcome would be unknown.
  Result<void> load_and_kill() {
    Loader loader(orders_, ledger_, start_);
    Progress progress("loaded", orders_.size());
    ASSIGN_OR_RETURN(Client client, connect());
    int kills = 0;
    while (!loader.is_done() || wall_now() < end_) {
      const WallTime next_kill = start_ + (end_ - start_) * (kills + 1) / (options_.kills + 1);
      if (kills < options_.kills && wall_now() >= next_kill) {
        TRY(kill_and_start());
        ++kills;
      }
      if (!loader.is_done() && loader.next_created() <= wall_now()) {
        TRY(to_result(loader.load_batch(client, wall_now())));
        progress.show(loader.loaded());
        continue;
      }
      WallTime next = kills < options_.kills ? std::min(end_, next_kill) : end_;
      if (!loader.is_done()) next = std::min(next, loader.next_created());
      wait_until(next);
    }
    return detent::ok();
  }

  /// Opens a client that does not repeat calls.
  Result<Client> connect() const {
    return to_result(Client::create(server_.url(), {.retry_for = std::chrono::milliseconds{0}}));
  }

  Result<void> kill_and_start() {
    server_.kill();
    const detent::MonotonicTime killed = clock_.now();
    TRY(server_.start());
    const auto away = std::chrono::floor<milliseconds>(clock_.now() - killed);
    std::printf("killed the server (kill -9); ready again after %lld ms\n",
                static_cast<long long>(away.count()));
    return detent::ok();
  }

  /// Waits until every order that was due at the end of the run is completed.
  void settle() {
    const WallTime give_up = wall_now() + kSettleTime;
    while (ledger_.open_count(end_) > 0 && wall_now() < give_up) {
      wait_until(wall_now() + milliseconds{50});
    }
  }

  /// The server's answers about orders whose completion it has not acknowledged.
  struct Remainder {
    std::size_t waiting = 0;
    std::size_t completed = 0;  // no longer there; the answer was lost in a kill
    std::size_t lost = 0;       // no longer there, but never completed
    std::size_t overdue = 0;    // waiting, but due before the end
  };
  Result<Remainder> ask_for_the_rest() {
    ASSIGN_OR_RETURN(Client client, connect());
    const std::vector<Entry> entries = ledger_.entries();
    Progress progress("checked", entries.size());
    Remainder rest;
    std::size_t checked = 0;
    for (const Entry& entry : entries) {
      progress.show(++checked);
      if (entry.completed || entry.task == 0) continue;
      const auto task = to_result(client.get(entry.task));
      if (!task && task.error().code != ErrorCode::not_found) return task.error();
      ++(task ? rest.waiting : entry.outcome_unknown ? rest.completed : rest.lost);
      if (task && entry.due_at <= end_) ++rest.overdue;
    }
    return rest;
  }

  bool account(const Remainder& rest) const {
    const Ledger::Sums sums = ledger_.sums();
    const std::size_t completed = sums.completed + rest.completed;
    std::printf(
        "loaded         %9zu\nfired          %9zu\ncompleted      %9zu  (answer lost in a kill: "
        "%zu)\n"
        "still waiting  %9zu\n"
        "lost           %9zu\nearly          %9zu\nduplicates     %9zu  (leases open at the kills: "
        "%zu)\nlateness       p50 %lld ms, p99 %lld ms\n",
        sums.loaded, sums.fired, completed, rest.completed, rest.waiting, rest.lost, sums.early,
        sums.duplicates, sums.open_leases, static_cast<long long>(sums.lateness_p50.count()),
        static_cast<long long>(sums.lateness_p99.count()));
    bool all = expect(sums.loaded == orders_.size(), "every order was loaded");
    all &= expect(rest.lost == 0, "no order was lost");
    all &= expect(completed + rest.waiting + rest.lost == sums.loaded, "the sums add up");
    all &= expect(rest.overdue == 0, "every order that fell due was completed");
    all &= expect(sums.early == 0, "no order was handed out early");
    all &= expect(sums.duplicates <= sums.open_leases,
                  "only orders that a worker held at a kill were handed out twice");
    return all;
  }

  static bool expect(bool holds, const char* what) {
    std::printf("%s %s\n", holds ? "  ok  " : " FAIL ", what);
    return holds;
  }

  const std::vector<Order>& orders_;
  const RunOptions& options_;
  detent::SystemClock clock_;
  TemporaryFolder folder_;
  Ledger ledger_;
  ServerProcess server_;
  std::vector<std::unique_ptr<Worker>> workers_;
  WallTime start_{};
  WallTime end_{};
};

}  // namespace

Result<bool> run(const std::vector<Order>& orders, const RunOptions& options) {
  return Run(orders, options).play();
}

}  // namespace orders
