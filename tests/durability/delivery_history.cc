#include "tests/durability/delivery_history.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "detent/check.h"

namespace detent {
namespace {

DeliveryHistory::Number number_in(const std::string& payload) {
  DeliveryHistory::Number number = 0;
  std::from_chars(payload.data(), payload.data() + payload.size(), number);
  return number;
}

std::string in_ms(WallTime at) { return std::to_string(at.time_since_epoch().count()); }

}  // namespace

DeliveryHistory::Known& DeliveryHistory::change(Number number) {
  DETENT_CHECK(number >= 1 && number <= tasks_.size());
  changed_.insert(number);
  return tasks_[number - 1];
}

void DeliveryHistory::note(Number number, const std::string& what) {
  findings_.push_back("task " + std::to_string(number) + " " + what);
}

void DeliveryHistory::find(std::string what) {
  const MutexLock lock(mutex_);
  findings_.push_back(std::move(what));
}

DeliveryHistory::Number DeliveryHistory::asked(WallTime not_before, std::uint32_t max_attempts) {
  const MutexLock lock(mutex_);
  tasks_.push_back({.not_before = not_before, .max_attempts = max_attempts});
  return tasks_.size();
}

void DeliveryHistory::accepted(Number number, std::uint64_t id, WallTime due_at) {
  const MutexLock lock(mutex_);
  Known& task = change(number);
  if (task.id != 0 && task.id != id) note(number, "was doubled: it has two ids");
  if (due_at < task.not_before && task.attempts == 0) note(number, "is due too early");
  task.id = id;
  if (task.attempts > 0) return;  // it was delivered and failed before this answer came
  task.due_at = due_at;
  task.not_before = due_at;
}

void DeliveryHistory::asked_cancel(Number number) {
  const MutexLock lock(mutex_);
  ++change(number).ends_in_doubt;
}

void DeliveryHistory::cancelled(Number number, const ClientResult<void>& answer) {
  const MutexLock lock(mutex_);
  Known& task = change(number);
  const bool may_have_gone = task.is_gone || task.ends_in_doubt > 1;
  --task.ends_in_doubt;
  if (!answer) {
    if (answer.error().code == ClientError::Code::conflict) return;
    if (answer.error().code != ClientError::Code::not_found)
      return note(number, answer.error().message);
    if (!may_have_gone) note(number, "was lost: a cancel did not find it");
    return;
  }
  if (task.is_gone) note(number, "came back: it was cancelled after its end");
  if (!task.lease.empty() && !task.fail_asked) note(number, "was cancelled while it was leased");
  task.lease.clear();
  task.is_gone = true;
}

void DeliveryHistory::asked_complete(Number number) { asked_cancel(number); }

void DeliveryHistory::completed(Number number, client::LeaseStatus outcome) {
  const MutexLock lock(mutex_);
  Known& task = change(number);
  --task.ends_in_doubt;
  task.lease.clear();
  if (outcome != client::LeaseStatus::done)
    return note(number, "could not be completed under its lease");
  if (task.is_gone) note(number, "came back: it was completed after its end");
  task.is_gone = true;
}

void DeliveryHistory::asked_fail(Number number, WallTime not_before) {
  const MutexLock lock(mutex_);
  change(number).fail_asked = not_before;
}

void DeliveryHistory::count_fail(Known& task) {
  ++task.attempts;
  task.not_before = *task.fail_asked;
  task.due_at.reset();
  task.fail_asked.reset();
  task.lease.clear();
}

void DeliveryHistory::failed(Number number, const std::string& lease, client::LeaseStatus outcome) {
  const MutexLock lock(mutex_);
  Known& task = change(number);
  if (task.lease != lease)
    return;  // delivered again before this answer came, so the failure was counted
  if (outcome == client::LeaseStatus::conflict) note(number, "could not be failed under its lease");
  count_fail(task);
  const bool is_last = task.attempts == task.max_attempts;
  task.is_dead = outcome == client::LeaseStatus::dead;
  if (task.is_dead != is_last) note(number, "died at the wrong attempt");
}

void DeliveryHistory::check_hand_out(Number number, const Known& task,
                                     const client::LeasedTask& leased, WallTime now) {
  if (task.id != 0 && task.id != leased.id) note(number, "was doubled: it has two ids");
  if (task.is_gone || task.is_dead) note(number, "came back: handed out after its end");
  if (!task.lease.empty()) note(number, "was doubled: handed out twice at a time");
  if (now < task.not_before) {
    note(number, "was early: at " + in_ms(now) + ", not before " + in_ms(task.not_before));
  }
  if (leased.attempt != task.attempts + 1) {
    note(number, "has the wrong attempt: " + std::to_string(leased.attempt) + " after " +
                     std::to_string(task.attempts));
  }
  if (leased.attempt == task.last_handed_out && !task.was_held_at_kill) {
    note(number, "was doubled: the attempt was handed out before");
  }
}

void DeliveryHistory::delivered(const client::LeasedTask& leased, WallTime now) {
  const MutexLock lock(mutex_);
  const Number number = number_in(leased.payload.data);
  if (number < 1 || number > tasks_.size()) {
    findings_.push_back("a task was handed out that nobody made: " + leased.payload.data);
    return;
  }
  Known& task = change(number);
  // Another worker can get the task before the answer to the failed attempt has arrived.
  if (task.fail_asked && leased.attempt == task.attempts + 2) count_fail(task);
  check_hand_out(number, task, leased, now);
  if (leased.attempt == task.last_handed_out) ++duplicates_;
  task.was_held_at_kill = false;
  task.id = leased.id;
  task.last_handed_out = leased.attempt;
  task.lease = leased.lease;
}

std::vector<std::string> DeliveryHistory::killed() {
  const MutexLock lock(mutex_);
  std::vector<std::string> leases;
  for (Known& task : tasks_) {
    if (task.lease.empty()) continue;
    leases.push_back(std::exchange(task.lease, {}));
    task.was_held_at_kill = true;
  }
  leases_at_kills_ += leases.size();
  return leases;
}

void DeliveryHistory::look(const std::function<ClientResult<client::Task>(std::uint64_t)>& look_up,
                           Scope scope) {
  const MutexLock lock(mutex_);
  if (scope == Scope::all) {
    for (Number number = 1; number <= tasks_.size(); ++number) changed_.insert(number);
  }
  for (const Number number : std::exchange(changed_, {})) {
    const std::uint64_t id = tasks_[number - 1].id;
    if (id != 0) settle(number, look_up(id));
  }
}

void DeliveryHistory::settle(Number number, const ClientResult<client::Task>& is) {
  Known& task = tasks_[number - 1];
  if (is) {
    settle_found(number, task, *is);
  } else if (is.error().code != ClientError::Code::not_found) {
    note(number, "cannot be looked up: " + is.error().message);
  } else {
    if (!task.is_gone && task.ends_in_doubt == 0) note(number, "was lost");
    task.is_gone = true;
  }
  task.ends_in_doubt = 0;
  task.fail_asked.reset();
}

void DeliveryHistory::settle_found(Number number, Known& task, const client::Task& is) {
  if (task.is_gone) note(number, "came back");
  if (number_in(is.payload.data) != number) note(number, "has another's payload");
  const bool has_failed = task.fail_asked && is.attempts == task.attempts + 1;
  if (has_failed) {
    count_fail(task);
    task.is_dead = task.attempts == task.max_attempts;
  }
  if (is.attempts != task.attempts) note(number, "has another number of attempts");
  if ((is.state == client::TaskState::dead) != task.is_dead) note(number, "died, or lives again");
  if (is.state == client::TaskState::leased) note(number, "is leased, and nobody has it");
  if (!task.is_dead && task.due_at && is.due_at != task.due_at) {
    note(number, "has another due time");
  }
}

std::optional<DeliveryHistory::Number> DeliveryHistory::any_live(Rng& rng) const {
  const MutexLock lock(mutex_);
  if (tasks_.empty()) return std::nullopt;
  for (int tries = 0; tries < 20; ++tries) {
    const std::size_t back = rng.below(std::min(1'000U, static_cast<std::uint32_t>(tasks_.size())));
    const std::size_t index = tasks_.size() - 1 - back;
    if (tasks_[index].id != 0 && !tasks_[index].is_gone) return index + 1;
  }
  return std::nullopt;
}

std::uint64_t DeliveryHistory::id_of(Number number) const {
  const MutexLock lock(mutex_);
  return tasks_.at(number - 1).id;
}

std::size_t DeliveryHistory::present() const {
  const MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const Known& task : tasks_) {
    if (task.id != 0 && !task.is_gone) ++count;
  }
  return count;
}

std::size_t DeliveryHistory::in_doubt() const {
  const MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const Known& task : tasks_) {
    if (task.id == 0) ++count;
  }
  return count;
}

std::size_t DeliveryHistory::asked_count() const {
  const MutexLock lock(mutex_);
  return tasks_.size();
}

std::size_t DeliveryHistory::duplicates() const {
  const MutexLock lock(mutex_);
  return duplicates_;
}

std::size_t DeliveryHistory::leases_at_kills() const {
  const MutexLock lock(mutex_);
  return leases_at_kills_;
}

std::vector<std::string> DeliveryHistory::findings() const {
  const MutexLock lock(mutex_);
  return findings_;
}

}  // namespace detent
