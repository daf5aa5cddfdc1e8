#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/wall_time.h"
#include "cli/argument_options.h"
#include "cli/argument_values.h"
#include "cli/command_reader.h"
#include "cli/completion.h"
#include "cli/cron_arguments.h"
#include "cli/man_page.h"
#include "cli/measure_arguments.h"
#include "cli/schedule_arguments.h"
#include "cli/serve_arguments.h"
#include "cli/setting_sources.h"
#include "task/forecast.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

/// All that the options write to. One command is chosen; the others keep their defaults.
struct Parsed {
  ServeOptions serve;
  std::string config;  // the file of settings; empty: none on the command line
  bool print_config = false;
  ClientCall call;
  PutCommand put;
  GetCommand get;
  ListCommand list;
  CancelCommand cancel;
  MoveCommand move;
  RunCommand run;
  LeaseCommand lease;
  CompleteCommand complete;
  FailCommand fail;
  QueuesCommand queues;
  PauseCommand pause;
  ResumeCommand resume;
  PurgeCommand purge;
  RedriveCommand redrive;
  TopCommand top;
  BenchCommand bench;
  ForecastCommand forecast;
  DumpCommand dump;
  RestoreCommand restore;
  ScheduleArguments schedule;
  CheckOptions check;
  TokenOptions token;
  CronArguments cron;
  Shell shell = Shell::bash;  // to complete for
};

/// Options of which a command line must have one.
struct Choice {
  std::vector<const CLI::Option*> options;
  const char* names;
};

void require(CLI::App& command, std::vector<Choice> choices) {
  command.callback([choices = std::move(choices)] {
    for (const Choice& choice : choices) {
      const bool is_made =
          std::any_of(choice.options.begin(), choice.options.end(),
                      [](const CLI::Option* option) { return option->count() > 0; });
      if (!is_made) throw CLI::RequiredError(choice.names);
    }
  });
}

Choice add_due(CLI::App& command, Due& due) {
  CLI::Option* delay = add_parsed<milliseconds>(command, "--delay", parse_any_duration,
                                                [&due](milliseconds value) { due = value; });
  delay->type_name("DURATION")->description("due so long from now: 1500ms, 30s, 5m, 2h, 30d, PT1H");
  CLI::Option* due_at =
      add_parsed<WallTime>(command, "--due-at", parse_due_at, [&due](WallTime at) { due = at; });
  due_at->type_name("TIME")
      ->description("due then: RFC 3339, or milliseconds since 1970")
      ->excludes(delay);
  return {{delay, due_at}, "--delay or --due-at"};
}

/// By its id, or by its queue and key.
Choice add_task_name(CLI::App& command, TaskName& task) {
  const auto as_key = [&task]() -> TaskKey& {
    if (!std::holds_alternative<TaskKey>(task)) task = TaskKey{};
    return std::get<TaskKey>(task);
  };
  CLI::Option* id =
      add_parsed<TaskId>(command, "ID", parse_id, [&task](TaskId value) { task = value; });
  id->description("the task's id");
  CLI::Option* queue = command.add_option_function<std::string>(
      "--queue", [as_key](const std::string& name) { as_key().queue = name; },
      "the task's queue, with --key instead of ID");
  CLI::Option* key = command.add_option_function<std::string>(
      "--key", [as_key](const std::string& text) { as_key().key = text; }, "its key there");
  queue->type_name("QUEUE")->needs(key)->excludes(id);
  key->type_name("KEY")->needs(queue);
  return {{id, queue}, "ID, or --queue and --key,"};
}

void add_webhook(CLI::App& command, ScheduleRequest& request) {
  add_parsed<std::string>(command, "--webhook", parse_webhook,
                          [&request](std::string url) { request.webhook = std::move(url); })
      ->type_name("URL")
      ->description("deliver the task there; no worker leases it");
  command
      .add_option_function<std::vector<std::string>>(
          "--header",
          [&request](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) request.headers.push_back(*parse_header(text));
          },
          "send it along with the webhook's request; may be given again")
      ->type_name("NAME: VALUE")
      ->allow_extra_args(false)
      ->check(
          [](const std::string& text) {
            const Result<TaskHeader> header = parse_header(text);
            return header ? std::string() : header.error().message;
          },
          "");
}

void add_put(CLI::App& app, ClientCall& call, PutCommand& put) {
  CLI::App* command = add_client_command(app, call, "put", "schedule a task");
  command->add_option("QUEUE", put.request.queue, "name of the queue")->required();
  command->add_option("PAYLOAD", put.payload,
                      "JSON if it reads as JSON, else bytes; - reads standard input");
  command->add_flag("--bytes", put.bytes, "the payload is bytes, whatever it looks like");
  add_due(*command, put.request.due);
  command
      ->add_option("--key", put.request.key,
                   "stands for the task in its queue: put again it is the same task")
      ->type_name("KEY");
  command->add_option("--priority", put.request.rules.priority, "lower is more urgent")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--max-attempts", put.request.rules.max_attempts,
                   "attempts before the task is dead")
      ->type_name("N")
      ->check(CLI::Range(1U, kMaxAttempts));
  add_webhook(*command, put.request);
  command->footer(
      "Examples:\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent put reports --due-at 2030-01-01T09:00:00Z --max-attempts 5\n"
      "  detent put orders '{\"cancel\":1001}' --delay 30m --key o-1001\n"
      "  detent put calls --webhook https://example.org/hook --header 'X-Tenant: a'\n"
      "  head -c 32 /dev/urandom | detent put blobs - --bytes");
}

void add_of_a_task(CLI::App& app, Parsed& parsed) {
  CLI::App* get = add_client_command(app, parsed.call, "get", "show a task");
  require(*get, {add_task_name(*get, parsed.get.task)});
  get->footer("Examples:\n  detent get 1024 --json\n  detent get --queue orders --key o-1001");

  CLI::App* cancel = add_client_command(app, parsed.call, "cancel", "remove a task not leased");
  require(*cancel, {add_task_name(*cancel, parsed.cancel.task)});
  cancel->footer("Examples:\n  detent cancel 1024\n  detent cancel --queue orders --key o-1001");

  CLI::App* move = add_client_command(app, parsed.call, "move", "give a task another due time");
  require(*move, {add_task_name(*move, parsed.move.task), add_due(*move, parsed.move.due)});
  move->footer(
      "A dead task lives again.\n"
      "Examples:\n"
      "  detent move 1024 --delay 2h\n"
      "  detent move --queue orders --key o-1001 --due-at 2030-01-01T09:00:00Z");

  CLI::App* run = add_client_command(app, parsed.call, "run", "make a task due now");
  add_parsed<TaskId>(*run, "ID", parse_id, [&parsed](TaskId id) { parsed.run.id = id; })
      ->description("the task's id")
      ->required();
  run->footer("A dead task lives again.\nExample:\n  detent run 1024");
}

void add_list(CLI::App& app, ClientCall& call, ListCommand& list) {
  CLI::App* command = add_client_command(app, call, "list", "show tasks in due order");
  TaskFilter& filter = list.filter;
  command->add_option("--queue", filter.queue, "only those of this queue")->type_name("QUEUE");
  add_parsed<TaskState>(*command, "--state", parse_state,
                        [&filter](TaskState state) { filter.state = state; })
      ->description("only those in this state")
      ->type_name("scheduled|ready|leased|dead|completed|cancelled");
  command->add_option("--key", filter.key, "only those that this key stands for")->type_name("KEY");
  add_parsed<WallTime>(*command, "--due-after", parse_due_at,
                       [&filter](WallTime at) { filter.due_after = at; })
      ->description("only those due then or later: RFC 3339, or milliseconds since 1970")
      ->type_name("TIME");
  add_parsed<WallTime>(*command, "--due-before", parse_due_at,
                       [&filter](WallTime at) { filter.due_before = at; })
      ->description("only those due before")
      ->type_name("TIME");
  command->add_option("--limit", list.limit, "most tasks to show")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--cursor", list.cursor, "go on where a list has ended")->type_name("CURSOR");
  command->footer(
      "Examples:\n"
      "  detent list --queue mail --state dead\n"
      "  detent list --due-before 2030-01-01T00:00:00Z --limit 1000 --json");
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

void add_of_queues(CLI::App& app, Parsed& parsed) {
  const auto add = [&](const char* name, const char* what, std::string& queue) {
    CLI::App* command = add_client_command(app, parsed.call, name, what);
    command->add_option("QUEUE", queue, "name of the queue")->required();
    return command;
  };
  CLI::App* queues =
      add_client_command(app, parsed.call, "queues", "show all queues, or one with its settings");
  queues->add_option("QUEUE", parsed.queues.queue, "name of the queue; left out: all");
  queues->footer("Examples:\n  detent queues\n  detent queues mail");
  add("pause", "hand out nothing of a queue", parsed.pause.queue)
      ->footer("Example:\n  detent pause mail");
  add("resume", "hand out what is ready again", parsed.resume.queue)
      ->footer("Example:\n  detent resume mail");
  CLI::App* purge = add("purge", "remove all tasks of a queue not leased", parsed.purge.queue);
  purge->add_flag("--yes", parsed.purge.yes, "do not ask whether that is meant");
  purge->footer("Example:\n  detent purge mail --yes");
  add("redrive", "make all dead tasks of a queue due now", parsed.redrive.queue)
      ->footer("Example:\n  detent redrive mail");
}

void add_forecast(CLI::App& app, ClientCall& call, ForecastCommand& forecast) {
  CLI::App* command = add_client_command(app, call, "forecast", "show when tasks are due");
  add_duration(*command, "--span", forecast.span)
      ->description("how far from now on; at least a minute")
      ->default_str("1d");
  command->add_option("--bins", forecast.bins, "parts the time is divided into")
      ->check(CLI::Range(std::size_t{1}, kMaxForecastBins))
      ->type_name("N")
      ->capture_default_str();
  command->footer("Example:\n  detent forecast --span 7d --bins 28");
}

void add_copies(CLI::App& app, Parsed& parsed) {
  CLI::App* dump =
      add_client_command(app, parsed.call, "dump", "copy all queues and tasks to a file");
  dump->add_option("FILE", parsed.dump.file, "where to; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  dump->footer("Examples:\n  detent dump tasks.ndjson\n  detent dump | zstd > tasks.ndjson.zst");

  CLI::App* restore =
      add_client_command(app, parsed.call, "restore", "bring queues and tasks back from a dump");
  restore->add_option("FILE", parsed.restore.file, "a dump; - reads standard input")->required();
  restore->add_flag("--partial", parsed.restore.partial, "also a dump that was cut off");
  restore->footer(
      "Tasks that are there already stay as they are: a restore may be repeated.\n"
      "Examples:\n  detent restore tasks.ndjson\n  zstd -dc tasks.ndjson.zst | detent restore -");
}

void add_token(CLI::App& app, TokenOptions& options) {
  CLI::App* token = app.add_subcommand("token", "access tokens of a server");
  token->require_subcommand(1);
  CLI::App* made = token->add_subcommand("new", "make an access token");
  made->add_option("--name", options.name, "whose token it is, for people")
      ->type_name("NAME")
      ->required();
  made->add_option("--scope", options.scopes,
                   "what it may do: read, produce, consume or admin, for all queues or as "
                   "SCOPE:PREFIX for those whose names begin so; may be given more than once")
      ->type_name("SCOPE")
      ->required();
  made->footer(
      "The token is shown once; the server's file of tokens holds its hash.\n"
      "Example:\n  detent token new --name shop --scope produce:orders. --scope consume:orders.");
}

void add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* check =
      app.add_subcommand("check", "look whether the data of a server that does not run is sound");
  add_data(*check, options.data, "folder of the server's data");
  add_store(*check, options.store);
  check->add_flag_function(
      "--json", [&options](std::int64_t) { options.format = OutputFormat::json; },
      "print JSON, on one line");
  check->footer("Example:\n  detent check --data /var/lib/detent");
}

/// `detent completion`, and `detent man`, which --help does not show.
void add_printers(CLI::App& app, Shell& shell) {
  CLI::App* completion =
      app.add_subcommand("completion", "print what a shell needs to complete commands");
  add_parsed<Shell>(*completion, "SHELL", parse_shell, [&shell](Shell named) { shell = named; })
      ->description("bash, zsh or fish")
      ->type_name("bash|zsh|fish")
      ->required();
  completion->footer(
      "Examples:\n"
      "  source <(detent completion bash)\n"
      "  detent completion fish > ~/.config/fish/completions/detent.fish");
  app.add_subcommand("man", "print the manual page")->group("");
}

void add_all(CLI::App& app, Parsed& parsed) {
  app.description("Detent keeps delayed tasks durable and hands them out on time.");
  app.set_version_flag("--version", std::string("detent ") + DETENT_VERSION);
  app.require_subcommand(1);
  // A place for --server and --json before the command as well.
  add_call_options(app, parsed.call);
  app.get_option("--server")->envname("DETENT_URL")->description("the server's address");
  app.get_option("--ca")->envname("DETENT_CA");
  app.get_option("--token")->envname("DETENT_TOKEN")->description("the access token");
  add_serve(app, parsed.serve, parsed.config, parsed.print_config);
  add_put(app, parsed.call, parsed.put);
  add_of_a_task(app, parsed);
  add_list(app, parsed.call, parsed.list);
  add_lease(app, parsed.call, parsed.lease);
  add_by_lease(app, parsed);
  add_of_queues(app, parsed);
  add_client_command(app, parsed.call, "stats", "show the server's counts")
      ->footer("Example:\n  detent stats --server http://127.0.0.1:7070");
  add_top(app, parsed.call, parsed.top);
  add_bench(app, parsed.call, parsed.bench);
  add_forecast(app, parsed.call, parsed.forecast);
  add_copies(app, parsed);
  add_schedule(app, parsed.call, parsed.schedule);
  add_check(app, parsed.check);
  add_token(app, parsed.token);
  add_cron(app, parsed.cron);
  add_printers(app, parsed.shell);
  app.footer(
      "Examples:\n"
      "  detent serve\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent lease mail --wait 20s\n"
      "`detent COMMAND --help` shows a command's options.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found.");
}

/// The command that was chosen. Requires: exactly one was, and it is one to a server.
ClientCommand chosen(const std::string& name, Parsed& parsed) {
  if (name == "put") return std::move(parsed.put);
  if (name == "get") return std::move(parsed.get);
  if (name == "list") return std::move(parsed.list);
  if (name == "cancel") return std::move(parsed.cancel);
  if (name == "move") return std::move(parsed.move);
  if (name == "run") return parsed.run;
  if (name == "lease") return std::move(parsed.lease);
  if (name == "complete") return std::move(parsed.complete);
  if (name == "fail") return std::move(parsed.fail);
  if (name == "queues") return std::move(parsed.queues);
  if (name == "pause") return std::move(parsed.pause);
  if (name == "resume") return std::move(parsed.resume);
  if (name == "purge") return std::move(parsed.purge);
  if (name == "redrive") return std::move(parsed.redrive);
  if (name == "top") return parsed.top;
  if (name == "bench") return std::move(parsed.bench);
  if (name == "forecast") return parsed.forecast;
  if (name == "dump") return std::move(parsed.dump);
  if (name == "restore") return std::move(parsed.restore);
  if (name == "schedule") return std::move(parsed.schedule.chosen);
  return StatsCommand{};
}

NothingToRun nothing_to_run(CLI::App& app, const CLI::ParseError& error) {
  show_variables(*app.get_subcommand("serve"));
  std::ostringstream out;
  std::ostringstream err;
  const bool is_done = app.exit(error, out, err) == 0;
  return is_done ? NothingToRun{ExitCode::done, out.str()}
                 : NothingToRun{ExitCode::usage, "detent: " + err.str()};
}

/// What the command line left out comes from elsewhere.
Invocation serve_call(CLI::App& serve, Parsed& parsed) {
  Result<std::vector<Setting>> settings = fill_settings(serve, parsed.config);
  if (!settings) {
    return NothingToRun{ExitCode::usage, "detent serve: " + settings.error().message + "\n"};
  }
  if (parsed.print_config) return NothingToRun{ExitCode::done, to_toml(*settings)};
  return ServeCall{std::move(parsed.serve), *std::move(settings)};
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
  if (name == "serve") return serve_call(*app.get_subcommand("serve"), parsed);
  if (name == "check") {
    if (parsed.call.format == OutputFormat::json) parsed.check.format = OutputFormat::json;
    return std::move(parsed.check);
  }
  if (name == "token") return std::move(parsed.token);
  if (name == "cron") return chosen_cron(app, parsed.cron, parsed.call.format);
  show_variables(*app.get_subcommand("serve"));
  if (name == "man") {
    return NothingToRun{ExitCode::done, render_man_page(read_commands(app))};
  }
  if (name == "completion") {
    return NothingToRun{ExitCode::done, render_completion(read_commands(app), parsed.shell)};
  }
  parsed.call.command = chosen(name, parsed);
  return std::move(parsed.call);
}

}  // namespace detent::cli
