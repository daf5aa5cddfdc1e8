// Runs the real engine with the real store on a disk whose power is cut. Does random operations
// until the cut, restarts, and compares the recovered tasks with the acknowledged ones.
//
// A seed decides the operations, the faults, and the data that each cut removes. RocksDB flushes
// and compacts on its own threads at any time. So a replay with the same seed repeats the
// operations on tasks, but not always the same file operations.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "engine/engine.h"
#include "store/store.h"
#include "tests/durability/power_cut_env.h"
#include "tests/durability/power_cut_file_system.h"
#include "tests/durability/task_history.h"

namespace detent {

/// A fault of the disk while it has power (PowerCutFileSystem).
enum class DiskFault : std::uint8_t { sync_fails, append_fails, no_space };

/// Uses one data folder over several boots. Thread-compatible.
class PowerCutRun {
 public:
  struct Options {
    std::chrono::milliseconds sync_interval{0};  // as in EngineOptions
    Lie lie = Lie::none;
    bool ignores_errors = false;  // the store reports success even if a write failed
  };
  PowerCutRun(std::uint64_t seed, Options options);
  ~PowerCutRun();

  /// Does work with `cuts` power cuts. Each is at a random file operation: some during a start,
  /// some between two steps of a settle. Then leases and completes all remaining tasks. Ends early
  /// if there are findings.
  void cut_power(int cuts);
  /// The disk fails from the n-th operation on (for no_space: from the n-th byte on), during work
  /// or during a start, and heals later. Then restarts once without a power cut and once with one.
  void break_disk(DiskFault fault, std::uint64_t n);

  /// The contradictions to the acknowledgements. Empty if there are none.
  const std::vector<std::string>& findings() const noexcept { return findings_; }
  std::uint64_t cuts() const noexcept { return cuts_; }
  /// The number of tasks whose creation was acknowledged.
  std::uint64_t accepted() const noexcept { return accepted_; }
  /// The number of starts and engines that ended with an error, as they should.
  std::uint64_t stops() const noexcept { return stops_; }
  /// The number of starts that were refused after a disk fault, because the manifest names a table
  /// that does not exist. This is a known weakness of RocksDB if the sync of a manifest fails (its
  /// issue 4990, pull request 12030). It acknowledges no write falsely. It was seen once in about
  /// 500 such faults.
  std::uint64_t refused() const noexcept { return refused_; }
  /// The number of steps of settles that were reached (StoreStep).
  std::uint64_t settle_steps() const noexcept { return settle_steps_; }

 private:
  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }
  WallTime wall_now() const;
  void find(std::string what) { findings_.push_back(std::move(what)); }

  // The machine.
  void boot();
  bool start();
  Result<void> open();
  void check_after_start();
  void check_totals();
  void stop();
  void cut();
  void arm(DiskFault fault, std::uint64_t n);

  // Work.
  void work(int steps);
  bool is_stopped() const { return engine_->stopped_by() || disk_->is_off(); }
  bool turn();
  void end_leases();
  void step();
  void schedule();
  void lease();
  void do_with_lease();
  void do_with_stale_lease();
  void do_with_task();
  void do_with_queue();
  void check_hand_out(const LeasedTask& leased);
  void drain();
  std::string any_queue() { return one_in(3) ? "r" : "q"; }
  std::chrono::milliseconds any_delay();
  TaskHistory::State look_up(TaskId id);
  void note(TaskId id, TaskHistory::State state);
  void note_as_it_is(TaskId id);

  Rng rng_;
  const Options options_;
  TestFolder folder_;
  ManualClock clock_;
  std::unique_ptr<PowerCutFileSystem> disk_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Engine> engine_;

  // Written by the thread that runs the settle: its own thread or the store's. No other data
  // depends on it, so relaxed would be enough.
  std::atomic<std::uint64_t> settle_steps_{0};
  std::uint64_t cut_at_settle_step_ = 0;  // constant while the store is open; 0: never

  TaskHistory history_;
  std::vector<LeasedTask> leases_;
  std::vector<LeaseToken> stale_;  // leases of earlier starts
  std::vector<std::string> findings_;
  std::uint64_t payloads_ = 0;
  std::uint64_t cuts_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t refused_ = 0;
  bool had_bad_disk_ = false;
};

}  // namespace detent
