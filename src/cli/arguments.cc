#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/wall_time.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

/// Reads all of `text` as a decimal number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

Result<WallTime> parse_due_at(const std::string& text) {
  constexpr std::int64_t kEnd = kWallTimeEnd.time_since_epoch().count();
  const auto count = parse_number<std::int64_t>(text);
  if (!count) return parse_rfc3339(text);
  if (*count >= 0 && *count < kEnd) return WallTime{milliseconds{*count}};
  return Error{ErrorCode::invalid_argument, "not a time in the years 1970 to 9999", ""};
}

Result<milliseconds> parse_positive_duration(const std::string& text) {
  ASSIGN_OR_RETURN(const milliseconds duration, parse_duration(text));
  if (duration > milliseconds{0}) return duration;
  return Error{ErrorCode::invalid_argument, "must be longer than nothing", ""};
}

Result<TaskId> parse_id(const std::string& text) {
  if (const auto id = parse_task_id(text)) return *id;
  return Error{ErrorCode::invalid_argument, "not a task's id: " + text, ""};
}

Result<LogFormat> parse_log_format(const std::string& text) {
  if (text == "text") return LogFormat::text;
  if (text == "json") return LogFormat::json;
  return Error{ErrorCode::invalid_argument, "must be text or json", ""};
}

Result<LogLevel> parse_log_level(const std::string& text) {
  if (text == "debug") return LogLevel::debug;
  if (text == "info") return LogLevel::info;
  if (text == "warning") return LogLevel::warning;
  if (text == "error") return LogLevel::error;
  return Error{ErrorCode::invalid_argument, "must be debug, info, warning or error", ""};
}

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "127.0.0.1:7070" or "[::1]:7070".
Result<HostAndPort> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const Error wrong{ErrorCode::invalid_argument, "must be HOST:PORT, such as 127.0.0.1:7070", ""};
  if (colon == std::string::npos) return wrong;
  std::string host = text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong;
  }
  if (host.empty() || !port) return wrong;
  return HostAndPort{std::move(host), *port};
}

/// An option whose text `parse` reads: CLI11 tells its error with the option's name, and `take`
/// gets the value.
template <class T, class Take>
CLI::Option* add_parsed(CLI::App& app, const std::string& name,
                        Result<T> (*parse)(const std::string&), Take take) {
  CLI::Option* option =
      app.add_option_function<std::string>(name, [parse, take](const std::string& text) {
        take(*parse(text));  // the check below has accepted it
      });
  return option->check(
      [parse](const std::string& text) {
        const Result<T> value = parse(text);
        return value ? std::string() : value.error().message;
      },
      "");
}

Result<milliseconds> parse_any_duration(const std::string& text) { return parse_duration(text); }

CLI::Option* add_duration(CLI::App& app, const std::string& name, milliseconds& duration) {
  return add_parsed<milliseconds>(app, name, parse_any_duration,
                                  [&duration](milliseconds value) { duration = value; })
      ->type_name("DURATION");
}

CLI::Option* add_duration(CLI::App& app, const std::string& name,
                          std::optional<milliseconds>& duration) {
  return add_parsed<milliseconds>(app, name, parse_any_duration,
                                  [&duration](milliseconds value) { duration = value; })
      ->type_name("DURATION");
}

/// All that the options write to. One command is chosen; the others keep their defaults.
struct Parsed {
  ServeOptions serve;
  ClientCall call;
  PutCommand put;
  GetCommand get;
  CancelCommand cancel;
  LeaseCommand lease;
  CompleteCommand complete;
  FailCommand fail;
};

void add_call_options(CLI::App& app, ClientCall& call) {
  app.add_option("--server", call.server, "the server's address (or DETENT_URL)")
      ->type_name("URL")
      ->capture_default_str();
  app.add_flag_function(
      "--json", [&call](std::int64_t) { call.format = OutputFormat::json; },
      "print the server's answer as it is");
}

CLI::App* add_client_command(CLI::App& app, ClientCall& call, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  add_call_options(*command, call);
  return command;
}

void add_serve(CLI::App& app, ServeOptions& options) {
  CLI::App* serve = app.add_subcommand("serve", "run a server");
  serve->add_option("--data", options.data, "folder of the server's data; made if it is not there")
      ->envname("DETENT_DATA")
      ->type_name("DIR")
      ->capture_default_str();
  add_parsed<HostAndPort>(*serve, "--http", parse_address,
                          [&options](const HostAndPort& address) {
                            options.http_host = address.host;
                            options.http_port = address.port;
                          })
      ->envname("DETENT_HTTP")
      ->description("address to listen on for HTTP; loopback only")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:7070");
  serve->add_option_function<std::string>("--sync", [](const std::string&) {})
      ->envname("DETENT_SYNC")
      ->description("when an accepted task is on disk: `always` before the answer")
      ->check(
          [](const std::string& text) {
            return text == "always" ? "" : "this version knows only --sync always";
          },
          "")
      ->type_name("WHEN")
      ->default_str("always");
  add_parsed<milliseconds>(*serve, "--window", parse_positive_duration,
                           [&options](milliseconds window) { options.window = window; })
      ->envname("DETENT_WINDOW")
      ->description("how far ahead tasks are held in memory")
      ->type_name("DURATION")
      ->default_str("10m");
  serve->add_option("--max-loaded", options.max_loaded, "most tasks held in memory")
      ->envname("DETENT_MAX_LOADED")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000}))
      ->type_name("N")
      ->capture_default_str();
  add_parsed<LogFormat>(*serve, "--log-format", parse_log_format,
                        [&options](LogFormat format) { options.log_format = format; })
      ->envname("DETENT_LOG_FORMAT")
      ->description("text or json")
      ->type_name("FORMAT")
      ->default_str("text");
  add_parsed<LogLevel>(*serve, "--log-level", parse_log_level,
                       [&options](LogLevel level) { options.log_level = level; })
      ->envname("DETENT_LOG_LEVEL")
      ->description("debug, info, warning or error")
      ->type_name("LEVEL")
      ->default_str("info");
  serve->footer("Example:\n  detent serve --data /var/lib/detent --log-format json");
}

void add_put(CLI::App& app, ClientCall& call, PutCommand& put) {
  CLI::App* command = add_client_command(app, call, "put", "schedule a task");
  command->add_option("QUEUE", put.request.queue, "name of the queue")->required();
  command->add_option("PAYLOAD", put.payload,
                      "the payload: JSON if it reads as JSON, else bytes; - reads standard input");
  command->add_flag("--bytes", put.bytes, "the payload is bytes, whatever it looks like");
  CLI::Option* delay =
      add_parsed<milliseconds>(*command, "--delay", parse_any_duration,
                               [&put](milliseconds value) { put.request.due = value; });
  delay->type_name("DURATION")->description("due so long from now: 1500ms, 30s, 5m, 2h, 30d, PT1H");
  add_parsed<WallTime>(*command, "--due-at", parse_due_at,
                       [&put](WallTime at) { put.request.due = at; })
      ->type_name("TIME")
      ->description("due then: RFC 3339, or milliseconds since 1970")
      ->excludes(delay);
  command->add_option("--priority", put.request.rules.priority, "lower is more urgent")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--max-attempts", put.request.rules.max_attempts,
                   "attempts before the task is dead")
      ->type_name("N")
      ->check(CLI::Range(1U, kMaxAttempts));
  command->footer(
      "Examples:\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent put reports --due-at 2030-01-01T09:00:00Z --max-attempts 5\n"
      "  head -c 32 /dev/urandom | detent put blobs - --bytes");
}

void add_by_id(CLI::App& app, Parsed& parsed) {
  CLI::App* get = add_client_command(app, parsed.call, "get", "show a task");
  add_parsed<TaskId>(*get, "ID", parse_id, [&parsed](TaskId id) { parsed.get.id = id; })
      ->description("the task's id")
      ->required();
  get->footer("Example:\n  detent get 1024 --json");

  CLI::App* cancel = add_client_command(app, parsed.call, "cancel", "remove a task not leased");
  add_parsed<TaskId>(*cancel, "ID", parse_id, [&parsed](TaskId id) { parsed.cancel.id = id; })
      ->description("the task's id")
      ->required();
  cancel->footer("Example:\n  detent cancel 1024");
}

void add_lease(CLI::App& app, ClientCall& call, LeaseCommand& lease) {
  CLI::App* command = add_client_command(app, call, "lease", "take tasks that are due");
  command->add_option("QUEUE", lease.request.queue, "name of the queue")->required();
  command->add_option("--max", lease.request.max, "most tasks to take")
      ->check(CLI::Range(std::size_t{1}, kMaxLeaseTasks))
      ->type_name("N")
      ->capture_default_str();
  add_duration(*command, "--wait", lease.wait)
      ->description("how long to wait when none is ready, at most 60s")
      ->check(
          [](const std::string& text) {
            return parse_duration(text).value_or(milliseconds::max()) <= kMaxLeaseWait
                       ? ""
                       : "at most 60s";
          },
          "")
      ->default_str("0s");
  add_duration(*command, "--visibility-timeout", lease.request.visibility_timeout)
      ->description("how long the lease lasts, if not as long as the task or the server says");
  command->add_option("--worker", lease.request.worker, "who takes them, for people to see")
      ->type_name("NAME");
  command->footer("Example:\n  detent lease mail --max 10 --wait 20s");
}

void add_by_lease(CLI::App& app, Parsed& parsed) {
  CLI::App* complete = add_client_command(app, parsed.call, "complete", "tasks are done");
  complete->add_option("LEASE", parsed.complete.leases, "leases as `detent lease` printed them")
      ->required();
  complete->footer("Example:\n  detent complete 3-17 3-18");

  CLI::App* fail = add_client_command(app, parsed.call, "fail", "attempts failed; try again later");
  fail->add_option("LEASE", parsed.fail.leases, "leases as `detent lease` printed them")
      ->required();
  add_duration(*fail, "--delay", parsed.fail.delay)
      ->description("due again so long from now, if not by the task's backoff");
  fail->add_option("--error", parsed.fail.error, "why, for people to see")->type_name("TEXT");
  fail->footer("Example:\n  detent fail 3-17 --error 'no route to host' --delay 5m");
}

void add_all(CLI::App& app, Parsed& parsed) {
  app.description("Detent keeps delayed tasks durable and hands them out on time.");
  app.set_version_flag("--version", std::string("detent ") + DETENT_VERSION);
  app.require_subcommand(1);
  // A place for --server and --json before the command as well.
  add_call_options(app, parsed.call);
  app.get_option("--server")->envname("DETENT_URL")->description("the server's address");
  add_serve(app, parsed.serve);
  add_put(app, parsed.call, parsed.put);
  add_by_id(app, parsed);
  add_lease(app, parsed.call, parsed.lease);
  add_by_lease(app, parsed);
  add_client_command(app, parsed.call, "stats", "show the server's counts")
      ->footer("Example:\n  detent stats --server http://127.0.0.1:7070");
  app.footer(
      "Examples:\n"
      "  detent serve\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent lease mail --wait 20s\n"
      "`detent COMMAND --help` shows a command's options.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found.");
}

/// The command that was chosen. Requires: exactly one was, and it is not serve.
ClientCommand chosen(const std::string& name, Parsed& parsed) {
  if (name == "put") return std::move(parsed.put);
  if (name == "get") return parsed.get;
  if (name == "cancel") return parsed.cancel;
  if (name == "lease") return std::move(parsed.lease);
  if (name == "complete") return std::move(parsed.complete);
  if (name == "fail") return std::move(parsed.fail);
  return StatsCommand{};
}

NothingToRun nothing_to_run(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const bool is_done = app.exit(error, out, err) == 0;
  return is_done ? NothingToRun{ExitCode::done, out.str()}
                 : NothingToRun{ExitCode::usage, "detent: " + err.str()};
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  CLI::App app("", "detent");
  Parsed parsed;
  add_all(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return nothing_to_run(app, error);
  }
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "serve") return std::move(parsed.serve);
  parsed.call.command = chosen(name, parsed);
  return std::move(parsed.call);
}

}  // namespace detent::cli
