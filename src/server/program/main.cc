// The program: its commands, and the start of `serve` up to the opening of a store. Then
// serve_alone.cc or serve_node.cc puts the server together.
#include <malloc.h>  // tidy-ok(third-party): sets when glibc returns memory to the system

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "base/log/redact.h"
#include "cli/cli.h"
#include "detent/clock.h"
#include "net/socket/tls_server.h"
#include "server/access/access.h"
#include "server/access/exposure.h"
#include "server/access/token_command.h"
#include "server/operate/reloads.h"
#include "server/operate/service_manager.h"
#include "server/operate/stop_signal.h"
#include "server/operate/terminate_handler.h"
#include "server/operate/version.h"
#include "server/program/backup_command.h"
#include "server/program/check_data.h"
#include "server/program/listeners.h"
#include "server/program/serve_alone.h"
#include "server/program/serve_node.h"
#include "server/program/serving.h"

namespace detent::server {
namespace {

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
  ASSIGN_OR_RETURN(const std::unique_ptr<TaskTracer> tracer, start_tracer(options, clock));
  DeliveryLog deliveries(clock);
  const ServeContext with{.stop_signal = stop_signal,
                          .manager = manager,
                          .reloads = reloads,
                          .clock = clock,
                          .access = access.get(),
                          .tls = tls,
                          .tracer = tracer.get(),
                          .deliveries = deliveries};
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

void log_failed_start(const std::string& cause) {
  log_error("the server cannot start",
            {{"cause", cause}, {"action", "correct the cause, then start the server again"}});
}

/// Returns true if the words or the environment say that the log has JSON. Settings that cannot be
/// read are then an error in the log. Otherwise a collector of logs would get a line without a time
/// and a level.
bool wants_json_log(int argc, const char* const* argv) {
  const std::vector<std::string_view> words(argv, argv + argc);
  if (words.size() < 2 || words[1] != "serve") return false;
  const char* const variable = std::getenv("DETENT_LOG_FORMAT");
  bool is_json = variable != nullptr && std::string_view(variable) == "json";
  for (std::size_t i = 2; i < words.size(); ++i) {
    constexpr std::string_view kFlag = "--log-format";
    if (words[i] == kFlag && i + 1 < words.size()) is_json = words[i + 1] == "json";
    if (words[i].starts_with("--log-format=")) is_json = words[i].ends_with("=json");
  }
  return is_json;
}

int serve(const cli::ServeCall& call, const cli::ReadAgain& read_again) {
  give_large_buffers_back();
  configure_log({.level = call.options.log_level, .format = call.options.log_format});
  log_info("starting", {{"version", kVersion}, {"pid", ::getpid()}});
  const Result<void> served = serve_until_told_to_stop(call, read_again);
  if (served) return 0;
  if (call.options.log_format == LogFormat::json) {
    log_failed_start(served.error().message);
  } else {
    std::fprintf(stderr, "detent serve: %s\n", redact(served.error().message).c_str());
  }
  // Wrong settings are wrong usage: no second try makes them right.
  const bool is_usage = served.error().code == ErrorCode::invalid_argument;
  return static_cast<int>(is_usage ? cli::ExitCode::usage : cli::ExitCode::failed);
}

int run(int argc, char** argv) {
  const bool is_json = wants_json_log(argc, argv);
  std::ostringstream told;
  const cli::Streams streams{std::cin, std::cout, is_json ? told : std::cerr,
                             cli::terminal_of_process()};
  const int exit_code =
      cli::run(argc, argv, streams,
               {.serve = serve,
                .check = check_data,
                .backup =
                    [&streams](const cli::BackupOptions& options) {
                      return run_backup(options, streams.out, streams.err);
                    },
                .restore_backup =
                    [&streams](const cli::RestoreBackupOptions& options) {
                      return run_restore_backup(options, streams.out, streams.err);
                    },
                .make_token =
                    [&streams](const cli::TokenOptions& options) {
                      return make_token(options, streams.out, streams.err);
                    }});
  std::string text = told.str();
  text.erase(text.find_last_not_of('\n') + 1);
  if (!text.empty()) {
    configure_log({.format = LogFormat::json});
    log_failed_start(text);
  }
  return exit_code;
}

}  // namespace
}  // namespace detent::server

int main(int argc, char** argv) {
  // At a limit of file sizes a write then fails, and is handled as one that meets a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  detent::server::install_terminate_handler();
  return detent::server::run(argc, argv);
}
