#include "server/program/serving.h"

#include <string>
#include <utility>

#include "base/log/log.h"
#include "server/program/announce.h"
#include "server/program/listeners.h"

namespace detent::server {

Result<std::unique_ptr<TaskTracer>> start_tracer(const cli::ServeOptions& options, Clock& clock) {
  return TaskTracer::start(
      {.endpoint = options.otlp_endpoint,
       .ratio = options.otlp_ratio,
       .service = {.version = DETENT_VERSION, .instance = options.cluster.node}},
      clock);
}

Result<std::unique_ptr<Alerts>> start_alerts(const cli::ServeOptions& options,
                                             const std::filesystem::path& keys_file,
                                             AlertSource source, Clock& clock) {
  return Alerts::start({.thresholds = {.pending = options.alert_pending,
                                       .dead = options.alert_dead,
                                       .lateness = options.alert_lateness},
                        .url = options.alert_webhook,
                        .allow = options.webhook_allow,
                        .keys_file = keys_file},
                       std::move(source), clock);
}

void reload_webhook_keys(Reloads& reloads, const std::filesystem::path& keys_file,
                         std::function<Result<void>()> read_keys, Alerts* alerts) {
  if (keys_file.empty()) return;
  reloads.add("the webhook keys in " + keys_file.string(),
              [read_keys = std::move(read_keys), alerts]() -> Result<void> {
                TRY(read_keys());
                return alerts != nullptr ? alerts->reload_keys() : ok();
              });
}

void run_until_stopped(const cli::ServeOptions& options, const ServeContext& with,
                       const net::HttpServer& http, BeanstalkServer* beanstalk) {
  announce(options, http.port(),
           beanstalk != nullptr ? address_of(options.beanstalk_host, beanstalk->port()) : "");
  with.manager.ready();
  const auto reload = [&with] {
    with.manager.reloading(with.clock.now());
    with.reloads.run();
    with.manager.ready();
  };
  const char* const signal =
      with.stop_signal.wait({.on_drain = [beanstalk] { drain(beanstalk); }, .on_reload = reload});
  log_info("stopping", {{"signal", signal}});
  with.manager.stopping();
}

}  // namespace detent::server
