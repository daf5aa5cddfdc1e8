// Records the answers that clients of a server got about their tasks, and reports violations of the
// delivery contract. Violations are: a lost task, a task that came back after its end, two leases
// of a task at the same time, an early delivery, or a wrong attempt number.
//
// The payload of each task is a number. So a task whose creation was never answered is recognized
// when it is leased. A client reports each call before it sends the call, and reports the answer
// afterwards. If the server is killed between the two, the call may have had its effect or not. The
// first look after the restart decides. TaskHistory is similar, but for one thread that sees all
// commits. This class is for many clients that see only answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/rng.h"
#include "detent/client.h"

namespace detent {

/// Thread-safe.
class DeliveryHistory {
 public:
  using Number = std::uint64_t;  // of a task, counted from 1

  // Calls: before the call, and after the answer.

  /// A task will be created that must not be delivered before `not_before`. Returns its number,
  /// which must be its payload.
  Number asked(WallTime not_before, std::uint32_t max_attempts);
  void accepted(Number number, std::uint64_t id, WallTime due_at);
  /// The task will be cancelled.
  void asked_cancel(Number number);
  void cancelled(Number number, const ClientResult<void>& answer);
  /// The task will be completed.
  void asked_complete(Number number);
  void completed(Number number, client::LeaseStatus outcome);
  /// The attempt will be failed. The task may come again at `not_before` or later.
  void asked_fail(Number number, WallTime not_before);
  void failed(Number number, const std::string& lease, client::LeaseStatus outcome);
  /// A worker got the task, at `now` or earlier.
  void delivered(const client::LeasedTask& task, WallTime now);

  // The whole server.

  /// The server was killed, and all clients have ended. All leases are void. Returns these leases.
  std::vector<std::string> killed();
  /// Looks up the tasks that changed since the last look, or all tasks, and decides all open calls.
  /// Call it after a restart, while no client runs.
  enum class Scope : std::uint8_t { changed, all };
  void look(const std::function<ClientResult<client::Task>(std::uint64_t)>& look_up, Scope scope);

  // The recorded facts.

  /// Returns a recently created task that should exist, or nullopt if it found none.
  std::optional<Number> any_live(Rng& rng) const;
  std::uint64_t id_of(Number number) const;
  /// present() is the number of tasks that must exist, including dead tasks. in_doubt() is the
  /// number of tasks that may exist: their creation was never answered, and they were not seen
  /// since.
  std::size_t present() const;
  std::size_t in_doubt() const;
  std::size_t asked_count() const;
  /// duplicates() is the number of deliveries of an attempt that was delivered before. It must not
  /// exceed leases_at_kills(), the number of leases at all kills.
  std::size_t duplicates() const;
  std::size_t leases_at_kills() const;
  /// The violations of the contract. Empty if there are none.
  std::vector<std::string> findings() const;
  void find(std::string what);

 private:
  struct Known {
    std::uint64_t id = 0;  // 0: no answer or delivery has told the id
    WallTime not_before{};
    std::optional<WallTime> due_at = {};  // if an answer contained it
    std::uint32_t max_attempts = 1;
    std::uint32_t attempts = 0;          // attempts that have ended
    std::uint32_t last_handed_out = 0;   // the last attempt that was delivered
    int ends_in_doubt = 0;               // completions and cancels without an answer
    std::optional<WallTime> fail_asked;  // a failure without an answer: its `not_before`
    std::string lease = {};              // the present lease; empty: none
    bool was_held_at_kill = false;       // leased at a kill, and not delivered since
    bool is_dead = false;
    bool is_gone = false;
  };
  Known& change(Number number) DETENT_REQUIRES(mutex_);
  void note(Number number, const std::string& what) DETENT_REQUIRES(mutex_);
  void check_hand_out(Number number, const Known& task, const client::LeasedTask& leased,
                      WallTime now) DETENT_REQUIRES(mutex_);
  void settle(Number number, const ClientResult<client::Task>& is) DETENT_REQUIRES(mutex_);
  void settle_found(Number number, Known& task, const client::Task& is) DETENT_REQUIRES(mutex_);
  static void count_fail(Known& task);

  mutable Mutex mutex_;
  std::vector<Known> tasks_ DETENT_GUARDED_BY(mutex_);  // by number − 1
  std::set<Number> changed_ DETENT_GUARDED_BY(mutex_);  // since the last look
  std::size_t duplicates_ DETENT_GUARDED_BY(mutex_) = 0;
  std::size_t leases_at_kills_ DETENT_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> findings_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent
