// Far tasks in another detent server: each lies there as one task of one queue.
//
// Its key there is our id in decimal, its payload our record, and it is due there `lead` before it
// is due here: so it is ready there as soon as it is near, and to take it is to lease it. A claim
// is the lease's visibility timeout; forget() completes the lease, whose token is kept in memory.
// What of the contract in external_scheduler.h is kept, and how far, is said at the class.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/api_client.h"
#include "external/external_scheduler.h"

namespace detent {

struct RemoteDetentOptions {
  std::string url;                        // http://HOST[:PORT] or https://HOST[:PORT]
  std::string token = {};                 // an access token of that server; "": none
  std::string ca_file = {};               // as ClientOptions::ca_file
  std::string queue = "detent-external";  // of this data folder alone
  std::string folder = {};                // Store::identity() of that data folder
  /// So long before they are due tasks may be taken. Holds for those that are put from now on.
  std::chrono::milliseconds lead = std::chrono::hours{1};
  std::chrono::milliseconds timeout = std::chrono::seconds{10};  // of each request
};

/// A call is several requests, for at most kMaxLeaseTasks tasks or 4 MiB of records each. Memory: a
/// token for each task that was taken and not forgotten yet.
///
/// Durability: that server answers when a task is synced, unless it was started with another --sync
/// than the default; unlike Redis it cannot be asked for that.
///
/// Clause 2 of the contract: whatever removes a task there names the other server's id for it, or a
/// lease, never the key, and put() never takes what lies there already for its own. So what was
/// held back on its way cannot hit a task that was put since: none is lost. But a put() that failed
/// and reaches that server only after later calls were answered does put, and then a task may come
/// back that has ended. That server carries out in order what it has read, so this takes a network
/// that holds bytes back for longer than `timeout`; there is no fence against it as in Redis.
///
/// Clause 3: whose tasks the queue keeps is said by a task of the queue "QUEUE.folder", due in 136
/// years. It is looked at before the first call and after an error; a server with another data
/// folder is refused for as long as it stands there, also once the queue is empty, because nothing
/// there can be compared and changed in one step. Two servers with copies of one folder are not
/// noticed.
///
/// stamp(): the generation is a task of "QUEUE.folder" too. One that was held back on its way for
/// so long may put a lower one in place of a higher, which looks like a loss.
///
/// Clause 5: that server's clock decides what is ready and which claims have run out, so `now` and
/// `until` of take() are not used. That clock may be wrong by much less than `lead`.
///
/// What was claimed by a run of ours that crashed can be neither forgotten nor put (`unavailable`)
/// until the claim has run out: only the lease's token ends it before.
class RemoteDetentScheduler final : public ExternalScheduler {
 public:
  /// Does not connect yet. Errors: invalid_argument, naming the option.
  static Result<std::unique_ptr<RemoteDetentScheduler>> create(const RemoteDetentOptions& options);
  /// Over a client that is there. Requires: options that create() accepts.
  RemoteDetentScheduler(ApiClient client, RemoteDetentOptions options)
      : options_(std::move(options)), client_(std::move(client)) {}
  RemoteDetentScheduler(const RemoteDetentScheduler&) = delete;
  RemoteDetentScheduler& operator=(const RemoteDetentScheduler&) = delete;

  /// Not a task whose record is larger than a payload there may be.
  bool keeps(const Task& task) const override;
  Result<void> put(std::span<const Task> tasks) override;
  Result<CancelOutcome> cancel(TaskId id) override;
  Result<std::optional<Task>> find(TaskId id) override;
  /// Records that cannot be read are set aside in the queue "QUEUE.damaged".
  Result<Taken> take(const TakeRequest& request) override;
  Result<void> forget(std::span<const TaskId> ids) override;
  Result<std::uint64_t> size() override;
  Result<void> stamp(std::uint64_t before, std::uint64_t generation) override;
  Result<std::uint64_t> generation() override;
  std::string stamp_command(std::uint64_t generation) const override;

  /// Where what is damaged goes.
  static std::string damaged_queue(std::string_view queue) {
    return std::string(queue) + ".damaged";
  }
  /// Where it is said whose tasks they are: the payload of the task with this key is the folder.
  static std::string folder_queue(std::string_view queue) { return std::string(queue) + ".folder"; }
  static constexpr std::string_view kFolderKey = "folder";
  /// Of the task of that queue whose payload is the generation.
  static constexpr std::string_view kGenerationKey = "generation";

 private:
  ScheduleRequest request_for(const Task& task) const;
  Error failed(std::string_view verb, Error error);
  Result<void> set_up_queue();
  Result<void> drop_ended(const std::string& queue);
  Result<void> expect_own_folder();
  Result<void> put_part(std::span<const Task> tasks, std::span<const ScheduleRequest> requests);
  Result<void> replace(TaskId id, const ScheduleRequest& request);
  Result<std::optional<TaskSnapshot>> look_up(TaskId id);
  Result<void> remove(TaskId id);
  Result<std::vector<TaskId>> complete_taken(std::span<const TaskId> ids);
  Result<void> set_aside(const ApiClient::LeasedTask& leased);

  const RemoteDetentOptions options_;
  ApiClient client_;
  bool is_queue_set_up_ = false;
  std::map<TaskId, std::string> tokens_;  // of what was taken and not forgotten
};

}  // namespace detent
