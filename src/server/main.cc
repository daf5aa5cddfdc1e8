// The whole program, assembled from top to bottom. Only this file names the concrete store.
#include <cstdio>
#include <iostream>
#include <memory>
#include <utility>

#include "base/log/log.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "server/exposure.h"
#include "server/routes.h"
#include "server/stop_signal.h"
#include "server/version.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::server {
namespace {

/// How long requests that are under way at a stop may still take.
constexpr std::chrono::seconds kStopGrace{10};

void announce(const cli::ServeOptions& options, std::uint16_t port) {
  const bool is_ipv6 = options.http_host.find(':') != std::string::npos;
  const std::string url = "http://" +
                          (is_ipv6 ? "[" + options.http_host + "]" : options.http_host) + ":" +
                          std::to_string(port);
  std::printf(
      "Detent %s is ready at %s, data in %s. Try:\n"
      "  curl -s %s/v1/tasks -d "
      "'{\"queue\":\"mail\",\"payload\":{\"to\":\"ada\"},\"delay\":\"3s\"}'\n"
      "  curl -s %s/v1/queues/mail/lease -d '{\"wait\":\"20s\"}'\n",
      kVersion, url.c_str(), options.data.c_str(), url.c_str(), url.c_str());
  std::fflush(stdout);
  log_info("ready", {{"address", url}, {"data", options.data.string()}});
}

Result<void> serve_until_told_to_stop(const cli::ServeOptions& options) {
  StopSignal stop_signal;
  TRY(require_loopback(options.http_host));

  SystemClock clock;
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                   RocksDbStore::open({.path = options.data.string()}));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::open(*store, clock,
                                                                {.window = options.window,
                                                                 .max_loaded = options.max_loaded,
                                                                 .seed = random_seed()}));
  EngineThread engine_thread(std::move(engine), clock, [](const Error& error) {
    log_error("the engine has stopped", {{"cause", error.message}});
  });
  Routes routes(engine_thread, clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   net::HttpServer::start(
                       {.address = options.http_host, .port = options.http_port},
                       [&routes](net::HttpRequest request, net::Responder responder) {
                         routes.handle(std::move(request), std::move(responder));
                       },
                       http_problem));
  announce(options, http->port());

  log_info("stopping", {{"signal", stop_signal.wait()}});
  (void)engine_thread.post([](Engine& stopping) { stopping.end_waits(); });
  http->stop(kStopGrace);
  engine_thread.stop();
  log_info("stopped");
  return ok();
}

int serve(const cli::ServeOptions& options) {
  configure_log({.level = options.log_level, .format = options.log_format});
  const Result<void> served = serve_until_told_to_stop(options);
  if (served) return 0;
  std::fprintf(stderr, "detent serve: %s\n", served.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace detent::server

int main(int argc, char** argv) {
  return detent::cli::run(argc, argv, {std::cin, std::cout, std::cerr}, detent::server::serve);
}
