// Each part is made from the parts above it. The end of the function stops the parts in the correct
// order.
#include "server/program/serve_alone.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server/http_server.h"
#include "server/backup/backups.h"
#include "server/beanstalk/beanstalk_server.h"
#include "server/beanstalk/engine_shards.h"
#include "server/operate/alerts.h"
#include "server/operate/descriptor_plan.h"
#include "server/operate/disk_watch.h"
#include "server/operate/offload.h"
#include "server/operate/watchdog.h"
#include "server/operate/webhooks.h"
#include "server/program/announce.h"
#include "server/program/listeners.h"
#include "server/program/open_engine.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "sinks/open_sinks.h"

namespace detent::server {
namespace {

/// Empty when the tasks are not in a folder.
std::filesystem::path data_on_disk(const cli::ServeOptions& options) {
  return options.store.empty() ? options.data : std::filesystem::path();
}

/// Null when the tasks are not in a folder.
std::unique_ptr<DiskWatch> watch_disk(const cli::ServeOptions& options, TaskIntake& intake,
                                      Clock& clock) {
  const std::filesystem::path folder = data_on_disk(options);
  if (folder.empty()) return nullptr;
  return std::make_unique<DiskWatch>(
      DiskWatchOptions{.folder = folder.string(),
                       .min_free_bytes = options.min_free_disk_bytes,
                       .read = [folder] { return free_bytes(folder); }},
      intake, clock);
}

/// Null when the tasks are not in a folder.
std::unique_ptr<Backups> offer_backups(const cli::ServeOptions& options,
                                       const std::shared_ptr<Checkpoints>& checkpoints,
                                       const DiskWatch* disk, const Clock& clock) {
  if (data_on_disk(options).empty()) return nullptr;
  return std::make_unique<Backups>(
      BackupsOptions{.data = options.data.string(), .checkpoints = checkpoints, .disk = disk},
      clock);
}

Result<WebhookOptions> webhook_options(const cli::ServeOptions& options, const ServeContext& with,
                                       const DescriptorPlan& descriptors) {
  ASSIGN_OR_RETURN(Sinks sinks, open_sinks(options.sinks));
  return WebhookOptions{.allow = options.webhook_allow,
                        .keys = options.webhook_keys,
                        .data = data_on_disk(options),
                        .sinks = std::move(sinks),
                        .max_calls = descriptors.webhook_calls,
                        .tracer = with.tracer,
                        .log = &with.deliveries};
}

/// `routes` must outlive the answers.
HttpAnswers answers_of(Routes& routes) {
  return {.handler =
              [&routes](net::HttpRequest request, net::Responder responder) {
                routes.handle(std::move(request), std::move(responder));
              },
          .check = [&routes](const net::HttpRequest& head) { return routes.refuse_unread(head); }};
}

}  // namespace

Result<void> serve_alone(const cli::ServeOptions& options, const ServeContext& with) {
  Clock& clock = with.clock;
  ASSIGN_OR_RETURN(const DescriptorPlan descriptors, take_descriptors(options));
  const std::uint64_t owner = random_owner();
  ChangeFeed changes;
  TaskIntake intake;
  const auto checkpoints = std::make_shared<Checkpoints>();
  const auto open = [&, mark = std::make_shared<DataFolderMark>()](DataFolderIs folder) {
    return open_engine(options, {clock, changes, &intake, checkpoints}, owner, folder, mark);
  };
  ASSIGN_OR_RETURN(OpenEngine opened, open_first_engine(options, clock, [&] {
                     return open(DataFolderIs::made_if_missing);
                   }));
  ASSIGN_OR_RETURN(const std::string identity, opened.store->identity());
  tell_restored(data_on_disk(options));
  const std::unique_ptr<DiskWatch> disk = watch_disk(options, intake, clock);
  const std::unique_ptr<Backups> backups = offer_backups(options, checkpoints, disk.get(), clock);
  EngineThread engine_thread(std::move(opened), clock,
                             log_engine_events([&] { return open(DataFolderIs::there); }, clock));
  const Watchdog watchdog(with.manager, engine_thread, clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<OffloadThread> offload,
                   start_offload({.url = options.external,
                                  .folder = identity,
                                  .after = options.external_after,
                                  .window = options.window},
                                 engine_thread, clock));
  ASSIGN_OR_RETURN(const WebhookOptions for_webhooks, webhook_options(options, with, descriptors));
  ASSIGN_OR_RETURN(const std::unique_ptr<Webhooks> webhooks,
                   Webhooks::start(for_webhooks, engine_thread, clock));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Alerts> alerts,
      start_alerts(options, webhooks->keys_file(), {.ask = figures_of(engine_thread)}, clock));
  reload_webhook_keys(
      with.reloads, webhooks->keys_file(), [&webhooks] { return webhooks->reload_keys(); },
      alerts.get());
  EventHub events(engine_thread, changes, clock);
  Routes routes(
      engine_thread, events, clock,
      {.offload = offload.get(),
       .cors_origin = options.cors_origin,
       .access = with.access,
       .host_names = options.host_names,
       .process_figures = [memory = options.memory_bytes] { return read_process_figures(memory); },
       .disk = disk.get(),
       .backups = backups.get(),
       .tracer = with.tracer});
  routes.show_deliveries(webhooks->deliverer());
  check_again_at_reload(with.reloads, [&events, &routes] {
    events.check_again();
    routes.check_again();
  });
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   start_http(options, descriptors, with.tls, answers_of(routes)));
  EngineShards job_shards(engine_thread, clock, with.tracer);
  ASSIGN_OR_RETURN(const std::unique_ptr<BeanstalkServer> beanstalk,
                   start_beanstalk(options, descriptors, job_shards, clock));
  run_until_stopped(options, with, *http, beanstalk.get());
  engine_thread.post_end([](Engine& stopping) { stopping.end_waits(); });
  events.stop();
  http->stop(kStopGrace);
  if (backups) backups->stop();  // its answers use the routes
  if (beanstalk) beanstalk->stop(kStopGrace);
  webhooks->stop(kStopGrace);
  if (offload) offload->stop();
  engine_thread.stop();
  log_info("stopped");
  return ok();
}

}  // namespace detent::server
