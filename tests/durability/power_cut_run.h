// The real engine on the real store on a disk whose power is cut: random verbs until it stops,
// then a restart, then what came back is held against what was acknowledged.
//
// A seed decides verbs, faults, and what each cut takes. RocksDB's own threads flush and compact in
// between as they please, so a replay meets the same verbs, not always the same file operations.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_folder.h"
#include "detent/clock.h"
#include "engine/engine.h"
#include "store/store.h"
#include "tests/durability/power_cut_env.h"
#include "tests/durability/power_cut_file_system.h"
#include "tests/durability/task_history.h"

namespace detent {

/// What goes wrong with the disk while it has power; see PowerCutFileSystem.
enum class DiskFault : std::uint8_t { sync_fails, append_fails, no_space };

/// One data folder through several boots. Thread-compatible.
class PowerCutRun {
 public:
  struct Options {
    std::chrono::milliseconds sync_interval{0};  // as EngineOptions
    Lie lie = Lie::none;
    bool ignores_errors = false;  // of writes: a store that says ok all the same
  };
  PowerCutRun(std::uint64_t seed, Options options);
  ~PowerCutRun();

  /// Work with `cuts` power cuts, each at a random file operation, some while a start is under way,
  /// some between two steps of a settle; then every task that is left is handed out and completed.
  /// Ends early when something was found.
  void cut_power(int cuts);
  /// A disk that goes bad at the n-th operation (byte, for no_space) and heals: while at work, or
  /// in a start. Then a restart without a power cut, and one with.
  void break_disk(DiskFault fault, std::uint64_t n);

  /// What contradicts the acknowledgements; empty when all is well.
  const std::vector<std::string>& findings() const noexcept { return findings_; }
  std::uint64_t cuts() const noexcept { return cuts_; }
  /// Tasks whose acceptance was acknowledged.
  std::uint64_t accepted() const noexcept { return accepted_; }
  /// Starts and engines that ended in an error, as they should.
  std::uint64_t stops() const noexcept { return stops_; }
  /// Starts that were refused after a bad disk, because the manifest names a table that is gone: a
  /// known weakness of RocksDB when the sync of a manifest fails (its issue 4990, pull request
  /// 12030). Nothing was acknowledged falsely. Seen once in about 500 such faults.
  std::uint64_t refused() const noexcept { return refused_; }
  /// Steps of settles that were reached (StoreStep).
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

  // Written where a settle runs, its own thread or the store's; alone, so relaxed would do.
  std::atomic<std::uint64_t> settle_steps_{0};
  std::uint64_t cut_at_settle_step_ = 0;  // constant while the store is open; 0: never

  TaskHistory history_;
  std::vector<LeasedTask> leases_;
  std::vector<LeaseToken> stale_;  // of earlier starts
  std::vector<std::string> findings_;
  std::uint64_t payloads_ = 0;
  std::uint64_t cuts_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t refused_ = 0;
  bool had_bad_disk_ = false;
};

}  // namespace detent
