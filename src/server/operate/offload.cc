#include "server/operate/offload.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/log/log.h"
#include "base/wall_time.h"
#include "external/external_url.h"
#include "external/redis_scheduler.h"
#include "external/remote_detent_scheduler.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

OffloadEvents log_events() {
  return {.on_failed =
              [](const Error& error) {
                log_warning(
                    "the external scheduler failed; far tasks stay here until it works again",
                    {{"cause", error.message},
                     {"action", "check the external scheduler; the server tries again by itself"}});
              },
          .on_recovered = [] { log_info("the external scheduler works again"); },
          .on_damaged =
              [](const Error& error) {
                log_error("a task came back damaged and was set aside in the external scheduler",
                          {{"cause", error.message},
                           {"action", "check whether another program writes under its keys"}});
              },
          .on_lost =
              [](const Error& error) {
                log_error("the external scheduler has lost far tasks; no tasks are handed over",
                          {{"cause", error.message},
                           {"action",
                            "restore the data of the external scheduler, or run the command at the "
                            "end of the cause to accept the loss"}});
              },
          .on_loss_ended = [] { log_info("the external scheduler has its far tasks again"); }};
}

Result<std::unique_ptr<ExternalScheduler>> make_external(const OffloadOptions& wanted,
                                                         milliseconds near) {
  ASSIGN_OR_RETURN(ExternalOptions options, parse_external_url(wanted.url));
  if (auto* const remote = std::get_if<RemoteDetentOptions>(&options)) {
    remote->folder = wanted.folder;
    remote->lead = near;
    return RemoteDetentScheduler::create(*remote);
  }
  auto& redis = std::get<RedisOptions>(options);
  redis.folder = wanted.folder;
  return RedisScheduler::create(std::move(redis));
}

}  // namespace

Result<FarTasksOptions> far_tasks_options(const OffloadOptions& options) {
  const milliseconds least = std::max(2 * options.window, milliseconds{1'000});
  if (options.after < least) {
    return Error{ErrorCode::invalid_argument,
                 "--external-after must be at least " + show_duration(least) +
                     " (twice --window, and at least 1s), got " + show_duration(options.after),
                 "external_after"};
  }
  const milliseconds near = options.after / 2;
  FarTasksOptions far{.near = near, .far = options.after};
  // A crash leaves tasks claimed in the external scheduler. Their claims must expire before the
  // tasks are due.
  far.claim = std::min(far.claim, near / 2);
  far.interval = std::min(far.interval, near / 2);
  far.backoff.max = std::min(far.backoff.max, near / 2);
  far.backoff.initial = std::min(far.backoff.initial, far.backoff.max);
  TRY(validate(far));
  return far;
}

Result<std::unique_ptr<OffloadThread>> start_offload(const OffloadOptions& options,
                                                     EngineThread& engine, Clock& clock) {
  if (options.url.empty()) return std::unique_ptr<OffloadThread>();
  ASSIGN_OR_RETURN(const FarTasksOptions far, far_tasks_options(options));
  Result<std::unique_ptr<ExternalScheduler>> scheduler = make_external(options, far.near);
  if (!scheduler) return with_context("--external", std::move(scheduler).error());
  return std::make_unique<OffloadThread>(engine, *std::move(scheduler), clock, far, log_events());
}

}  // namespace detent::server
