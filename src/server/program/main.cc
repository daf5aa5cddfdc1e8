// Assembles the whole program from top to bottom. Each part is made from the parts above it. The
// end of the file stops the parts in the correct order.
#include <malloc.h>  // tidy-ok(third-party): sets when glibc returns memory to the system

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "base/log/redact.h"
#include "cli/cli.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server.h"
#include "net/tls_server.h"
#include "server/access/access.h"
#include "server/access/exposure.h"
#include "server/access/token_command.h"
#include "server/beanstalk/beanstalk_server.h"
#include "server/beanstalk/engine_shards.h"
#include "server/operate/alerts.h"
#include "server/operate/descriptor_plan.h"
#include "server/operate/offload.h"
#include "server/operate/reloads.h"
#include "server/operate/service_manager.h"
#include "server/operate/stop_signal.h"
#include "server/operate/terminate_handler.h"
#include "server/operate/watchdog.h"
#include "server/operate/webhooks.h"
#include "server/program/announce.h"
#include "server/program/check_data.h"
#include "server/program/listeners.h"
#include "server/program/open_engine.h"
#include "server/program/serve_node.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "sinks/open_sinks.h"

namespace detent::server {
namespace {

/// How long requests that are under way at a stop may still take.
constexpr std::chrono::seconds kStopGrace{10};

Result<std::unique_ptr<Alerts>> start_alerts(const cli::ServeOptions& options,
                                             const Webhooks& webhooks, EngineThread& engine,
                                             Clock& clock) {
  return Alerts::start({.thresholds = {.pending = options.alert_pending,
                                       .dead = options.alert_dead,
                                       .lateness = options.alert_lateness},
                        .url = options.alert_webhook,
                        .allow = options.webhook_allow,
                        .keys_file = webhooks.keys_file()},
                       engine, clock);
}

/// `alerts` may be null.
void reload_keys_of(Webhooks& webhooks, Alerts* alerts, Reloads& reloads) {
  if (webhooks.keys_file().empty()) return;
  reloads.add("the webhook keys in " + webhooks.keys_file().string(),
              [&webhooks, alerts]() -> Result<void> {
                TRY(webhooks.reload_keys());
                return alerts != nullptr ? alerts->reload_keys() : ok();
              });
}

/// Empty when the tasks are not in a folder.
std::filesystem::path data_on_disk(const cli::ServeOptions& options) {
  return options.store.empty() ? options.data : std::filesystem::path();
}

Result<void> serve_alone(const cli::ServeOptions& options, const ServeContext& with) {
  Clock& clock = with.clock;
  ASSIGN_OR_RETURN(const DescriptorPlan descriptors, take_descriptors(options));
  const std::uint64_t owner = random_owner();
  ChangeFeed changes;
  const auto open = [&, mark = std::make_shared<DataFolderMark>()](DataFolderIs folder) {
    return open_engine(options, clock, owner, changes, folder, mark);
  };
  ASSIGN_OR_RETURN(OpenEngine opened, open_first_engine(options, clock, [&] {
                     return open(DataFolderIs::made_if_missing);
                   }));
  ASSIGN_OR_RETURN(const std::string identity, opened.store->identity());
  EngineThread engine_thread(std::move(opened), clock,
                             log_engine_events([&] { return open(DataFolderIs::there); }, clock));
  const Watchdog watchdog(with.manager, engine_thread, clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<OffloadThread> offload,
                   start_offload({.url = options.external,
                                  .folder = identity,
                                  .after = options.external_after,
                                  .window = options.window},
                                 engine_thread, clock));
  ASSIGN_OR_RETURN(Sinks sinks, open_sinks(options.sinks));
  ASSIGN_OR_RETURN(const std::unique_ptr<Webhooks> webhooks,
                   Webhooks::start({.allow = options.webhook_allow,
                                    .keys = options.webhook_keys,
                                    .data = data_on_disk(options),
                                    .sinks = std::move(sinks),
                                    .max_calls = descriptors.webhook_calls},
                                   engine_thread, clock));
  ASSIGN_OR_RETURN(const std::unique_ptr<Alerts> alerts,
                   start_alerts(options, *webhooks, engine_thread, clock));
  reload_keys_of(*webhooks, alerts.get(), with.reloads);
  EventHub events(engine_thread, changes, clock);
  Routes routes(
      engine_thread, events, clock,
      {.offload = offload.get(),
       .cors_origin = options.cors_origin,
       .access = with.access,
       .host_names = options.host_names,
       .process_figures = [data = data_on_disk(options)] { return read_process_figures(data); }});
  routes.show_deliveries(webhooks->deliverer());
  check_again_at_reload(with.reloads, [&events, &routes] {
    events.check_again();
    routes.check_again();
  });
  const auto handle = [&routes](net::HttpRequest request, net::Responder responder) {
    routes.handle(std::move(request), std::move(responder));
  };
  const auto refuse = [&routes](const net::HttpRequest& head) {
    return routes.refuse_unread(head);
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   start_http(options, descriptors, with.tls, {handle, refuse}));
  EngineShards job_shards(engine_thread, clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<BeanstalkServer> beanstalk,
                   start_beanstalk(options, descriptors, job_shards, clock));
  announce(options, http->port(),
           beanstalk ? address_of(options.beanstalk_host, beanstalk->port()) : "");
  with.manager.ready();

  wait_for_stop(with, [&] { drain(beanstalk.get()); });
  engine_thread.post_end([](Engine& stopping) { stopping.end_waits(); });
  events.stop();
  http->stop(kStopGrace);
  if (beanstalk) beanstalk->stop(kStopGrace);
  webhooks->stop(kStopGrace);
  if (offload) offload->stop();
  engine_thread.stop();
  log_info("stopped");
  return ok();
}

/// An unknown variable may be a misspelled setting or belong to another program, so it does not
/// stop the start.
void warn_of_unknown_variables(const cli::ServeCall& call) {
  for (const cli::UnknownVariable& variable : call.unknown_variables) {
    log_warning("ignoring unknown environment variable",
                {{"variable", variable.name}, {"nearest", variable.nearest}});
  }
}

Result<void> serve_until_told_to_stop(const cli::ServeCall& call,
                                      const cli::ReadAgain& read_again) {
  const cli::ServeOptions& options = call.options;
  StopSignal stop_signal;
  const ServiceManager manager;
  Reloads reloads(call, read_again);
  TRY(check_exposure(options));
  warn_of_exposure(options);
  warn_of_unknown_variables(call);
  SystemClock clock;
  ASSIGN_OR_RETURN(const std::unique_ptr<Access> access, load_access(options, reloads));
  ASSIGN_OR_RETURN(const std::shared_ptr<net::TlsServer> tls, load_tls(options, reloads, clock));
  const ServeContext with{.stop_signal = stop_signal,
                          .manager = manager,
                          .reloads = reloads,
                          .clock = clock,
                          .access = access.get(),
                          .tls = tls};
  return options.cluster.node.empty() ? serve_alone(options, with) : serve_as_node(options, with);
}

/// Batches and pending writes use large buffers for a short time. By default, glibc keeps freed
/// buffers, and its limit grows with their size, so the process would stay at its peak size. From
/// this size on, buffers go back to the system immediately. With a lower limit, accepting tasks
/// would take a seventh more processor time.
void give_large_buffers_back() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 1 << 20;
  static_cast<void>(::mallopt(M_MMAP_THRESHOLD, kLargeBytes));
  static_cast<void>(::mallopt(M_TRIM_THRESHOLD, 4 * kLargeBytes));
#endif
}

int serve(const cli::ServeCall& call, const cli::ReadAgain& read_again) {
  give_large_buffers_back();
  configure_log({.level = call.options.log_level, .format = call.options.log_format});
  const Result<void> served = serve_until_told_to_stop(call, read_again);
  if (served) return 0;
  std::fprintf(stderr, "detent serve: %s\n", redact(served.error().message).c_str());
  // Wrong settings are wrong usage: no second try makes them right.
  const bool is_usage = served.error().code == ErrorCode::invalid_argument;
  return static_cast<int>(is_usage ? cli::ExitCode::usage : cli::ExitCode::failed);
}

}  // namespace
}  // namespace detent::server

int main(int argc, char** argv) {
  // At a limit of file sizes a write then fails, and is handled as one that meets a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  detent::server::install_terminate_handler();
  const detent::cli::Streams streams{std::cin, std::cout, std::cerr,
                                     detent::cli::terminal_of_process()};
  return detent::cli::run(argc, argv, streams,
                          {detent::server::serve, detent::server::check_data,
                           [&streams](const detent::cli::TokenOptions& options) {
                             return detent::server::make_token(options, streams.out, streams.err);
                           }});
}
