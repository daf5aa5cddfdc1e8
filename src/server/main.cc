// The whole program, assembled from top to bottom. Only this file names the concrete store.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "base/log/log.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "server/beanstalk_server.h"
#include "server/exposure.h"
#include "server/memory_plan.h"
#include "server/offload.h"
#include "server/routes.h"
#include "server/stop_signal.h"
#include "server/version.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store_check.h"

namespace detent::server {
namespace {

/// How long requests that are under way at a stop may still take.
constexpr std::chrono::seconds kStopGrace{10};

std::string address_of(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

/// `beanstalk` is empty when it is off.
void announce(const cli::ServeOptions& options, std::uint16_t port, const std::string& beanstalk) {
  const std::string url = "http://" + address_of(options.http_host, port);
  std::printf(
      "Detent %s is ready at %s%s%s, data in %s. Try:\n"
      "  curl -s %s/v1/tasks -d "
      "'{\"queue\":\"mail\",\"payload\":{\"to\":\"ada\"},\"delay\":\"3s\"}'\n"
      "  curl -s %s/v1/queues/mail/lease -d '{\"wait\":\"20s\"}'\n",
      kVersion, url.c_str(), beanstalk.empty() ? "" : ", beanstalk at ", beanstalk.c_str(),
      options.data.c_str(), url.c_str(), url.c_str());
  std::fflush(stdout);
  log_info("ready", {{"address", url}, {"beanstalk", beanstalk}, {"data", options.data.string()}});
}

Result<OpenEngine> open_engine(const cli::ServeOptions& options, Clock& clock) {
  const MemoryPlan memory = plan_memory(options.memory_bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                   RocksDbStore::open({.path = options.data.string(),
                                       .cache_bytes = memory.cache_bytes,
                                       .write_buffer_bytes = memory.write_buffer_bytes,
                                       .settle_tasks = memory.settle_tasks,
                                       .settle_bytes = memory.settle_bytes}));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   Engine::open(*store, clock,
                                {.window = options.window,
                                 .max_loaded = memory.max_loaded,
                                 .sync_interval = options.sync_interval,
                                 .seed = random_seed()}));
  return OpenEngine{.store = std::move(store), .engine = std::move(engine)};
}

EngineEvents tell_events(UniqueFunction<Result<OpenEngine>()> reopen) {
  return {.on_stopped =
              [](const Error& error) {
                log_error("the store failed; nothing is accepted until it is open again",
                          {{"cause", error.message}});
              },
          .on_reopen_failed =
              [](const Error& error) {
                log_warning("the store cannot be opened again yet", {{"cause", error.message}});
              },
          .on_reopened = [] { log_info("the store is open again"); },
          .reopen = std::move(reopen)};
}

void drain(BeanstalkServer* beanstalk) {
  if (beanstalk == nullptr) return;
  beanstalk->drain();
  log_info("draining: beanstalk clients may put no more");
}

Result<void> serve_until_told_to_stop(const cli::ServeOptions& options) {
  StopSignal stop_signal;
  TRY(require_loopback(options.http_host));
  if (!options.beanstalk_host.empty()) TRY(require_loopback(options.beanstalk_host));

  SystemClock clock;
  const auto open = [&options, &clock] { return open_engine(options, clock); };
  ASSIGN_OR_RETURN(OpenEngine opened, open());
  EngineThread engine_thread(std::move(opened), clock, tell_events(open));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<OffloadThread> offload,
      start_offload(
          {.url = options.external, .after = options.external_after, .window = options.window},
          engine_thread, clock));
  Routes routes(engine_thread, clock, offload.get(), options.cors_origin);
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   net::HttpServer::start(
                       {.address = options.http_host, .port = options.http_port},
                       [&routes](net::HttpRequest request, net::Responder responder) {
                         routes.handle(std::move(request), std::move(responder));
                       },
                       http_problem));
  std::unique_ptr<BeanstalkServer> beanstalk;
  std::string beanstalk_address;
  if (!options.beanstalk_host.empty()) {
    ASSIGN_OR_RETURN(beanstalk, BeanstalkServer::start({.address = options.beanstalk_host,
                                                        .port = options.beanstalk_port},
                                                       engine_thread, clock));
    beanstalk_address = address_of(options.beanstalk_host, beanstalk->port());
  }
  announce(options, http->port(), beanstalk_address);

  log_info("stopping", {{"signal", stop_signal.wait([&beanstalk] { drain(beanstalk.get()); })}});
  (void)engine_thread.post([](Engine& stopping) { stopping.end_waits(); });
  http->stop(kStopGrace);
  if (beanstalk) beanstalk->stop(kStopGrace);
  if (offload) offload->stop();
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

/// A folder with nothing in it would be made a data folder.
Result<StoreReport> check_data(const std::filesystem::path& data) {
  std::error_code error;
  if (!std::filesystem::is_directory(data, error) || std::filesystem::is_empty(data, error)) {
    return Error{ErrorCode::not_found, "there is no data in " + data.string(), "data"};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, RocksDbStore::open({.path = data.string()}));
  using Shown = cli::Progress::Shown;
  const bool is_watched = cli::terminal_of_process().is_error_terminal;
  cli::Progress progress(std::cerr, is_watched ? Shown::line_that_changes : Shown::lines,
                         "records read:");
  return check_store(*store, [&progress](std::uint64_t read) { progress.at(read); });
}

int check(const cli::CheckOptions& options) {
  const Result<StoreReport> report = check_data(options.data);
  if (report) {
    std::cout << to_string(*report);
    return report->is_sound() ? 0 : 1;
  }
  std::fprintf(stderr, "detent check: %s\n", report.error().message.c_str());
  return static_cast<int>(cli::exit_code_of(report.error().code));
}

}  // namespace
}  // namespace detent::server

int main(int argc, char** argv) {
  const detent::cli::Streams streams{std::cin, std::cout, std::cerr,
                                     detent::cli::terminal_of_process()};
  return detent::cli::run(argc, argv, streams, {detent::server::serve, detent::server::check});
}
