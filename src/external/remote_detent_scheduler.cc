#include "external/remote_detent_scheduler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/wall_time.h"
#include "client/client_impl.h"
#include "detent/check.h"
#include "store/record_format.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The most bytes of records in one request. In base64 this is well below the server's limit for a
/// request.
constexpr std::size_t kPartBytes = std::size_t{4} << 20;
/// The most tasks in one lease. With the largest records, the answer is below 64 MiB.
constexpr std::size_t kPartLeases = 250;

Error claimed(TaskId id) {
  return {ErrorCode::unavailable,
          "task " + to_string(id) +
              " is still leased there to an earlier run of this server; it becomes free when that "
              "lease expires",
          ""};
}

Result<Task> decode(std::string_view key, const client::Payload& payload) {
  const std::optional<TaskId> id = parse_task_id(key);
  if (!id) {
    return Error{ErrorCode::data_loss, "its key \"" + std::string(key) + "\" is not a task id", ""};
  }
  return decode_record(*id, payload.data);
}

/// The last words of a command that an operator runs against that server.
std::string server_flag(const RemoteDetentOptions& options) { return " --server " + options.url; }

Error of_another_folder(const RemoteDetentOptions& options) {
  const std::string server = server_flag(options);
  return {ErrorCode::invalid_argument,
          "queue " + options.queue + " at " + options.url +
              " keeps tasks of another data folder; give this server its own queue in "
              "--external (?queue=NAME), or, if no other server uses it, give up those tasks: "
              "detent purge " +
              options.queue + server + " && detent cancel --queue " +
              RemoteDetentScheduler::folder_queue(options.queue) + " --key " +
              std::string(RemoteDetentScheduler::kFolderKey) + server,
          "queue"};
}

client::TaskKey generation_task(const RemoteDetentOptions& options) {
  return {RemoteDetentScheduler::folder_queue(options.queue),
          std::string(RemoteDetentScheduler::kGenerationKey)};
}

bool has_ended(client::TaskState state) {
  return state == client::TaskState::completed || state == client::TaskState::cancelled;
}

}  // namespace

Result<std::unique_ptr<RemoteDetentScheduler>> RemoteDetentScheduler::create(
    const RemoteDetentOptions& options) {
  if (!is_queue_name(options.queue) || !is_queue_name(damaged_queue(options.queue))) {
    return Error{ErrorCode::invalid_argument,
                 "the NAME in ?queue=NAME must be a queue name of at most 192 bytes", "queue"};
  }
  if (options.folder.empty()) {
    return Error{ErrorCode::invalid_argument, "must be the identity of a data folder", "folder"};
  }
  if (options.timeout <= milliseconds{0}) {
    return Error{ErrorCode::invalid_argument, "must be greater than 0", "timeout"};
  }
  if (options.lead < milliseconds{0} || options.lead > kMaxDelay) {
    return Error{ErrorCode::invalid_argument, "must be 0 to 4294967295 s", "lead"};
  }
  ASSIGN_OR_RETURN(Client client,
                   make_client_without_repeats(options.url, {.token = options.token,
                                                             .ca_file = options.ca_file,
                                                             .timeout = options.timeout}));
  return std::make_unique<RemoteDetentScheduler>(std::move(client), options);
}

/// Adds `verb` to an error; the client has already named the address. The next call sets up the
/// queue again, because another server may answer it.
Error RemoteDetentScheduler::failed(std::string_view verb, const ClientError& failure) {
  is_queue_set_up_ = false;
  Error error = to_error(failure);
  if (error.code == ErrorCode::unavailable) {
    error.message += "; start the detent server that --external names; Detent tries again";
  }
  return with_context(verb, std::move(error));
}

bool RemoteDetentScheduler::keeps(const Task& task) const {
  return encode_record(task).size() <= kMaxPayloadBytes;
}

/// A claim that expires is a failed attempt there. So the task gets the most attempts, and a short
/// backoff.
client::NewTask RemoteDetentScheduler::copy_for(const Task& task) const {
  constexpr milliseconds kPause{1'000};
  return {.queue = options_.queue,
          .payload = {.kind = client::Payload::Kind::bytes, .data = encode_record(task)},
          .due = std::max(task.due_at - options_.lead, WallTime{}),
          .key = to_string(task.id),
          .max_attempts = kMaxAttempts,
          .backoff = client::Backoff{kPause, kPause}};
}

Result<void> RemoteDetentScheduler::set_up_queue() {
  if (is_queue_set_up_) return ok();
  TRY(drop_ended(folder_queue(options_.queue)));
  TRY(expect_own_folder());
  TRY(drop_ended(options_.queue));
  is_queue_set_up_ = true;
  return ok();
}

/// Sets both retentions to 0, so that a key is free as soon as its task ends: this server may hand
/// over the same task again.
Result<void> RemoteDetentScheduler::drop_ended(const std::string& queue) {
  const client::QueueChange change{.retention = milliseconds{0}, .key_retention = milliseconds{0}};
  if (const auto changed = client_.change_queue(queue, change); !changed) {
    return failed("set up queue " + queue, changed.error());
  }
  return ok();
}

/// The first server that comes becomes the owner: of two that come at the same time, only one can
/// create the task with the key.
Result<void> RemoteDetentScheduler::expect_own_folder() {
  const client::TaskKey name{folder_queue(options_.queue), std::string(kFolderKey)};
  const client::Payload payload{.kind = client::Payload::Kind::bytes, .data = options_.folder};
  const auto answer = client_.schedule(
      {.queue = name.queue, .payload = payload, .due = milliseconds{kMaxDelay}, .key = name.key});
  if (answer) return ok();
  const std::string verb = "read the owner of queue " + options_.queue;
  if (answer.error().code != ClientError::Code::conflict) return failed(verb, answer.error());
  const auto there = client_.get(name);
  if (!there && there.error().code == ClientError::Code::not_found) {
    return Error{ErrorCode::unavailable, verb + ": the owner has just changed; Detent tries again",
                 ""};
  }
  if (!there) return failed(verb, there.error());
  if (there->payload == payload) return ok();
  return of_another_folder(options_);
}

Result<void> RemoteDetentScheduler::put(std::span<const Task> tasks) {
  TRY(set_up_queue());
  while (!tasks.empty()) {
    std::vector<client::NewTask> copies;
    for (std::size_t bytes = 0; copies.size() < std::min(tasks.size(), kMaxLeaseTasks);) {
      copies.push_back(copy_for(tasks[copies.size()]));
      bytes += copies.back().payload.data.size();
      if (bytes >= kPartBytes) break;
    }
    TRY(put_part(tasks.first(copies.size()), copies));
    tasks = tasks.subspan(copies.size());
  }
  return ok();
}

Result<void> RemoteDetentScheduler::put_part(std::span<const Task> tasks,
                                             std::span<const client::NewTask> copies) {
  const std::string verb = "put " + std::to_string(tasks.size()) + " tasks";
  const auto answers = client_.schedule_many(copies);
  if (!answers) return failed(verb, answers.error());
  if (answers->size() != copies.size()) {
    return Error{ErrorCode::internal, verb + ": " + std::to_string(answers->size()) + " answers",
                 ""};
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const ClientResult<client::ScheduledTask>& answer = (*answers)[i];
    if (answer && !answer->was_there) {
      tokens_.erase(tasks[i].id);
    } else if (answer || answer.error().code == ClientError::Code::conflict) {
      TRY(replace(tasks[i].id, copies[i]));
    } else {
      return failed(verb, answer.error());
    }
  }
  return ok();
}

/// Replaces the task also if it is the same one, because a delayed request may still remove it.
Result<void> RemoteDetentScheduler::replace(TaskId id, const client::NewTask& copy) {
  TRY(forget(std::span(&id, 1)));
  const auto answer = client_.schedule(copy);
  if (answer && !answer->was_there) return ok();
  if (!answer && answer.error().code != ClientError::Code::conflict) {
    return failed("put task " + to_string(id), answer.error());
  }
  is_queue_set_up_ = false;
  return Error{ErrorCode::invalid_argument,
               "put task " + to_string(id) +
                   ": its key still belongs to a task that has ended; queue " + options_.queue +
                   " must have a key retention of 0",
               ""};
}

/// Returns the task there; std::nullopt if there is none or it has ended.
Result<std::optional<client::Task>> RemoteDetentScheduler::look_up(TaskId id) {
  auto found = client_.get(client::TaskKey{options_.queue, to_string(id)});
  if (found && !has_ended(found->state)) return std::optional(*std::move(found));
  const bool is_gone = found || found.error().code == ClientError::Code::not_found;
  if (is_gone) return std::optional<client::Task>();
  return failed("find task " + to_string(id), found.error());
}

Result<CancelOutcome> RemoteDetentScheduler::cancel(TaskId id) {
  TRY(set_up_queue());
  ASSIGN_OR_RETURN(const std::optional<client::Task> there, look_up(id));
  if (!there) return CancelOutcome::not_there;
  const ClientResult<void> cancelled = client_.cancel(there->id);
  if (cancelled) {
    tokens_.erase(id);  // the token of a claim that had expired
    return CancelOutcome::cancelled;
  }
  switch (cancelled.error().code) {
    case ClientError::Code::not_found:
      return CancelOutcome::not_there;
    case ClientError::Code::conflict:
      return CancelOutcome::being_handed_back;
    default:
      return failed("cancel task " + to_string(id), cancelled.error());
  }
}

Result<std::optional<Task>> RemoteDetentScheduler::find(TaskId id) {
  TRY(set_up_queue());
  ASSIGN_OR_RETURN(const std::optional<client::Task> there, look_up(id));
  if (!there) return std::optional<Task>();
  ASSIGN_OR_RETURN(Task task, decode_record(id, there->payload.data));
  return std::optional(std::move(task));
}

Result<Taken> RemoteDetentScheduler::take(const TakeRequest& request) {
  DETENT_CHECK(request.limit > 0);
  TRY(set_up_queue());
  Taken taken;
  for (std::size_t left = request.limit; left > 0;) {
    const std::size_t most = std::min(left, kPartLeases);
    const auto leased = client_.lease(
        options_.queue, {.max = most,
                         .visibility_timeout = std::min(request.claim, kMaxVisibilityTimeout),
                         .worker = "external"});
    if (!leased) return failed("take tasks", leased.error());
    for (const client::LeasedTask& one : *leased) {
      auto task = decode(one.key, one.payload);
      if (task) {
        tokens_.insert_or_assign(task->id, one.lease);
        taken.tasks.push_back(*std::move(task));
      } else {
        TRY(set_aside(one));
        taken.damaged.push_back(std::move(task).error());
      }
    }
    if (leased->size() < most) break;
    left -= std::min(left, leased->size());
  }
  std::ranges::sort(taken.tasks, {},
                    [](const Task& task) { return std::pair(task.due_at, task.id); });
  return taken;
}

/// After a crash between the two requests, the record is taken again, and the first request finds
/// its own copy by the key. This key is the other server's id of the task, because the key of the
/// task itself may be damaged.
Result<void> RemoteDetentScheduler::set_aside(const client::LeasedTask& leased) {
  const client::NewTask copy{.queue = damaged_queue(options_.queue),
                             .payload = leased.payload,
                             .due = WallTime{},
                             .key = std::to_string(leased.id)};
  if (const auto kept = client_.schedule(copy); !kept) {
    return failed("set a damaged record aside", kept.error());
  }
  if (const auto done = client_.complete(std::array{leased.lease}); !done) {
    return failed("remove a damaged record", done.error());
  }
  return ok();
}

Result<void> RemoteDetentScheduler::forget(std::span<const TaskId> ids) {
  TRY(set_up_queue());
  while (!ids.empty()) {
    const auto part = ids.first(std::min(ids.size(), kMaxLeaseTasks));
    ids = ids.subspan(part.size());
    ASSIGN_OR_RETURN(const std::vector<TaskId> left, complete_taken(part));
    for (const TaskId id : left) TRY(remove(id));
  }
  return ok();
}

/// Completes the leases whose tokens are known. Returns the ids that it could not complete.
Result<std::vector<TaskId>> RemoteDetentScheduler::complete_taken(std::span<const TaskId> ids) {
  std::vector<TaskId> held;
  std::vector<TaskId> left;
  std::vector<std::string> leases;
  for (const TaskId id : ids) {
    const auto token = tokens_.find(id);
    if (token != tokens_.end()) leases.push_back(token->second);
    (token != tokens_.end() ? held : left).push_back(id);
  }
  if (leases.empty()) return left;
  const std::string verb = "forget " + std::to_string(held.size()) + " tasks";
  const auto outcomes = ClientInternals::of(client_).call_leases(leases, complete_call);
  if (!outcomes) return failed(verb, outcomes.error());
  if (outcomes->size() != held.size()) {
    return Error{ErrorCode::internal, verb + ": " + std::to_string(outcomes->size()) + " answers",
                 ""};
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const ClientResult<client::LeaseStatus>& outcome = (*outcomes)[i];
    if (!outcome) return failed(verb, outcome.error());
    tokens_.erase(held[i]);
    if (*outcome == client::LeaseStatus::conflict) left.push_back(held[i]);
  }
  return left;
}

Result<void> RemoteDetentScheduler::remove(TaskId id) {
  ASSIGN_OR_RETURN(const CancelOutcome outcome, cancel(id));
  if (outcome == CancelOutcome::being_handed_back) return claimed(id);
  return ok();
}

Result<std::uint64_t> RemoteDetentScheduler::size() {
  TRY(set_up_queue());
  const auto queue = client_.queue(options_.queue);
  if (queue) {
    return queue->scheduled + queue->ready + queue->leased + queue->dead;
  }
  if (queue.error().code == ClientError::Code::not_found) return std::uint64_t{0};
  return failed("count tasks", queue.error());
}

Result<void> RemoteDetentScheduler::stamp(std::uint64_t before, std::uint64_t generation) {
  const std::string verb = "stamp generation " + std::to_string(generation);
  ASSIGN_OR_RETURN(const std::uint64_t there, this->generation());
  if (there != before) {
    return Error{ErrorCode::unavailable,
                 verb + ": the generation in the queue is " + std::to_string(there) +
                     ", expected " + std::to_string(before),
                 ""};
  }
  const client::TaskKey name = generation_task(options_);
  const client::Payload payload{.kind = client::Payload::Kind::json,
                                .data = std::to_string(generation)};
  const auto edited = client_.edit(name, {.payload = payload});
  if (edited) return ok();
  // If an earlier generation is gone, the other server has just lost it, together with other
  // changes.
  const bool is_first = before == 0 && edited.error().code == ClientError::Code::not_found;
  if (!is_first) {
    Error error = failed(verb, edited.error());
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
    return error;
  }
  const auto made = client_.schedule(
      {.queue = name.queue, .payload = payload, .due = milliseconds{kMaxDelay}, .key = name.key});
  if (!made) return failed(verb, made.error());
  return ok();
}

Result<std::uint64_t> RemoteDetentScheduler::generation() {
  TRY(set_up_queue());
  const auto there = client_.get(generation_task(options_));
  if (there) return parse_generation(there->payload.data);
  if (there.error().code == ClientError::Code::not_found) return std::uint64_t{0};
  return failed("read the generation", there.error());
}

std::string RemoteDetentScheduler::stamp_command(std::uint64_t generation) const {
  const client::TaskKey name = generation_task(options_);
  return "detent cancel --queue " + name.queue + " --key " + name.key + server_flag(options_) +
         "; detent put " + name.queue + " " + std::to_string(generation) + " --key " + name.key +
         " --delay 1000000h" + server_flag(options_);
}

}  // namespace detent
