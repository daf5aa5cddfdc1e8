// What clients of a server saw happen to their tasks, and what in it breaks the delivery contract:
// a task lost, come back, handed out twice at a time, early, or under the wrong attempt.
//
// Each task carries a number of its own as its payload, so that one whose acceptance was never
// answered is known again when it is handed out. A client says what it asks before it asks, and
// what was answered afterwards; what was asked and not answered when the server was killed may have
// happened or not, and is settled by the first look after the restart. TaskHistory is the same for
// one thread that sees all commits; this one is for many clients, who see answers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "protocol/json/answer.h"
#include "task/request.h"

namespace detent {

/// Thread-safe.
class DeliveryHistory {
 public:
  using Number = std::uint64_t;  // of a task, from 1

  // Verbs: before and after.

  /// A task will be scheduled that may not be handed out before `not_before`. Returns its number,
  /// which is to be its payload.
  Number asked(WallTime not_before, std::uint32_t max_attempts);
  void accepted(Number number, TaskId id, WallTime due_at);
  /// It will be cancelled.
  void asked_cancel(Number number);
  void cancelled(Number number, const Result<void>& answer);
  /// It will be completed.
  void asked_complete(Number number);
  void completed(Number number, LeaseOutcome outcome);
  /// The attempt will be failed, to come again at `not_before` or later.
  void asked_fail(Number number, WallTime not_before);
  void failed(Number number, const std::string& lease, LeaseOutcome outcome);
  /// A worker got the task, at `now` or before.
  void delivered(const json::LeasedTaskAnswer& task, WallTime now);

  // The whole server.

  /// It was killed, and whoever asked has given up: leases are void. Returns theirs.
  std::vector<std::string> killed();
  /// Looks up every task that something happened to since the last look (or every one) and settles
  /// what was in doubt. Call it after a restart, when nobody else asks.
  enum class Scope : std::uint8_t { changed, all };
  void look(const std::function<Result<TaskSnapshot>(TaskId)>& look_up, Scope scope);

  // What is known.

  /// A task made of late that is there as far as is known; none when none was found.
  std::optional<Number> any_live(Rng& rng) const;
  TaskId id_of(Number number) const;
  /// Tasks that must be there, dead ones included; and those that may be, because their acceptance
  /// was never answered and they were not seen since.
  std::size_t present() const;
  std::size_t in_doubt() const;
  std::size_t asked_count() const;
  /// Hand-outs of an attempt that had been handed out before; and leases open at kills, which is as
  /// many as there may be.
  std::size_t duplicates() const;
  std::size_t leases_at_kills() const;
  /// What contradicts the contract; empty when all is well.
  std::vector<std::string> findings() const;
  void find(std::string what);

 private:
  struct Known {
    TaskId id = {};  // 0: not accepted as far as is known
    WallTime not_before{};
    std::optional<WallTime> due_at = {};  // where an answer told it
    std::uint32_t max_attempts = 1;
    std::uint32_t attempts = 0;          // that have ended
    std::uint32_t last_handed_out = 0;   // attempt
    int ends_in_doubt = 0;               // asked and not answered
    std::optional<WallTime> fail_asked;  // and not answered
    std::string lease = {};              // held now
    bool was_held_at_kill = false;       // and not handed out since
    bool is_dead = false;
    bool is_gone = false;
  };
  Known& change(Number number) DETENT_REQUIRES(mutex_);
  void note(Number number, const std::string& what) DETENT_REQUIRES(mutex_);
  void check_hand_out(Number number, const Known& task, const json::LeasedTaskAnswer& leased,
                      WallTime now) DETENT_REQUIRES(mutex_);
  void settle(Number number, const Result<TaskSnapshot>& is) DETENT_REQUIRES(mutex_);
  void settle_found(Number number, Known& task, const TaskSnapshot& is) DETENT_REQUIRES(mutex_);
  static void count_fail(Known& task);

  mutable Mutex mutex_;
  std::vector<Known> tasks_ DETENT_GUARDED_BY(mutex_);  // by number − 1
  std::set<Number> changed_ DETENT_GUARDED_BY(mutex_);  // since the last look
  std::size_t duplicates_ DETENT_GUARDED_BY(mutex_) = 0;
  std::size_t leases_at_kills_ DETENT_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> findings_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent
