// Keeps far tasks in another detent server. Each far task is one task in a queue of that server.
//
// There, the key of the task is its id here in decimal, and the payload is its record. It is due
// there `lead` earlier than here, so it becomes ready there when it is near. take() leases such
// tasks: the visibility timeout of the lease is the claim. forget() completes the lease, whose
// token this class keeps in memory. The comment of the class says how far it keeps the contract of
// external_scheduler.h.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detent/client.h"
#include "external/external_scheduler.h"

namespace detent {

struct RemoteDetentOptions {
  std::string url;                        // http://HOST[:PORT] or https://HOST[:PORT]
  std::string token = {};                 // an access token of that server; empty: none
  std::string ca_file = {};               // as ClientOptions::ca_file
  std::string queue = "detent-external";  // used by this data folder only
  std::string folder = {};                // Store::identity() of the data folder
  /// How long before its due time a task can be taken. A change has no effect on tasks that are
  /// already there.
  std::chrono::milliseconds lead = std::chrono::hours{1};
  std::chrono::milliseconds timeout = std::chrono::seconds{10};  // of each HTTP request
};

/// A call sends several HTTP requests, each for at most kMaxLeaseTasks tasks or about 4 MiB of
/// records. Memory: one lease token for each task that was taken and not yet forgotten.
///
/// Durability: the other server answers after a task is synced, unless it runs with another --sync
/// than the default. A client cannot check this setting, unlike the settings of Redis.
///
/// Clause 2 of the contract: every request that removes a task names the other server's id of the
/// task, or a lease, but never the key. And put() never accepts a task that is already there as its
/// own. So a delayed removal cannot hit a task that was put later, and no task is lost. But a put()
/// that failed can still arrive after later calls were answered. It then stores its tasks, and a
/// task that has ended can come back. The other server handles requests in the order of reading, so
/// this happens only if the network delays bytes for longer than `timeout`. There is no fencing
/// token as in Redis.
///
/// Clause 3: a task in the queue "QUEUE.folder", due in 136 years, has the identity of the data
/// folder that owns the tasks. It is checked before the first call, and again after an error. A
/// server with another data folder is refused as long as this task exists, even if the queue is
/// empty, because the check and a change of the task cannot be one step. Two servers with copies of
/// one data folder are not noticed.
///
/// stamp(): the generation is a task in "QUEUE.folder", too. A stamp that the network delays for
/// longer than `timeout` can replace a higher number by a lower one. This looks like a loss.
///
/// Clause 5 does not hold: the clock of the other server decides which tasks are ready and which
/// claims have ended, so take() ignores `now` and `until`. The error of that clock must be much
/// smaller than `lead`.
///
/// If this server crashes while it has claims, its next run does not have the lease tokens. It can
/// neither forget nor put these tasks (`unavailable`) until the claims end.
class RemoteDetentScheduler final : public ExternalScheduler {
 public:
  /// Does not connect yet. Errors: invalid_argument; the error names the option.
  static Result<std::unique_ptr<RemoteDetentScheduler>> create(const RemoteDetentOptions& options);
  /// Uses an existing client, which must not repeat calls. Requires: options that create() accepts.
  RemoteDetentScheduler(Client client, RemoteDetentOptions options)
      : options_(std::move(options)), client_(std::move(client)) {}
  RemoteDetentScheduler(const RemoteDetentScheduler&) = delete;
  RemoteDetentScheduler& operator=(const RemoteDetentScheduler&) = delete;

  /// False for a task whose record is larger than the largest payload there.
  bool keeps(const Task& task) const override;
  Result<void> put(std::span<const Task> tasks) override;
  Result<CancelOutcome> cancel(TaskId id) override;
  Result<std::optional<Task>> find(TaskId id) override;
  /// Moves records that cannot be read to the queue "QUEUE.damaged".
  Result<Taken> take(const TakeRequest& request) override;
  Result<void> forget(std::span<const TaskId> ids) override;
  Result<std::uint64_t> size() override;
  Result<void> stamp(std::uint64_t before, std::uint64_t generation) override;
  Result<std::uint64_t> generation() override;
  std::string stamp_command(std::uint64_t generation) const override;

  /// The queue of the records that could not be read.
  static std::string damaged_queue(std::string_view queue) {
    return std::string(queue) + ".damaged";
  }
  /// The queue with the task that names the owner: its key is kFolderKey, and its payload is the
  /// identity of the data folder.
  static std::string folder_queue(std::string_view queue) { return std::string(queue) + ".folder"; }
  static constexpr std::string_view kFolderKey = "folder";
  /// The key of the task in this queue whose payload is the generation.
  static constexpr std::string_view kGenerationKey = "generation";

 private:
  client::NewTask copy_for(const Task& task) const;
  Error failed(std::string_view verb, const ClientError& error);
  Result<void> set_up_queue();
  Result<void> drop_ended(const std::string& queue);
  Result<void> expect_own_folder();
  Result<void> put_part(std::span<const Task> tasks, std::span<const client::NewTask> copies);
  Result<void> replace(TaskId id, const client::NewTask& copy);
  Result<std::optional<client::Task>> look_up(TaskId id);
  Result<void> remove(TaskId id);
  Result<std::vector<TaskId>> complete_taken(std::span<const TaskId> ids);
  Result<void> set_aside(const client::LeasedTask& leased);

  const RemoteDetentOptions options_;
  Client client_;
  bool is_queue_set_up_ = false;
  std::map<TaskId, std::string> tokens_;  // lease tokens of tasks that were taken and not forgotten
};

}  // namespace detent
