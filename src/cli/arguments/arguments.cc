#include "cli/arguments/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/wall_time.h"
#include "cli/arguments/argument_options.h"
#include "cli/arguments/argument_values.h"
#include "cli/arguments/backup_arguments.h"
#include "cli/arguments/command_reader.h"
#include "cli/arguments/cron_arguments.h"
#include "cli/arguments/lease_arguments.h"
#include "cli/arguments/measure_arguments.h"
#include "cli/arguments/queue_arguments.h"
#include "cli/arguments/schedule_arguments.h"
#include "cli/arguments/serve_arguments.h"
#include "cli/arguments/task_arguments.h"
#include "cli/help/completion.h"
#include "cli/help/help_text.h"
#include "cli/help/man_page.h"
#include "cli/output/suggestion.h"
#include "cli/settings/setting_sources.h"
#include "task/forecast.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

/// The values that the options write to. The user chooses one command; the others keep their
/// defaults.
struct Parsed {
  ServeOptions serve;
  std::string config;  // value of --config; empty: not given
  bool print_config = false;
  ClientCall call;
  TaskArguments task;
  LeaseArguments lease;
  QueueArguments queue;
  StatsCommand stats;
  TopCommand top;
  BenchCommand bench;
  ForecastCommand forecast;
  DumpCommand dump;
  RestoreCommand restore;
  CallCommand any_call;
  ScheduleArguments schedule;
  CheckOptions check;
  BackupOptions backup;
  RestoreBackupOptions restore_backup;
  TokenOptions token;
  CronArguments cron;
  Shell shell = Shell::bash;  // of `detent completion`
};

void add_forecast(CLI::App& app, ClientCall& call, ForecastCommand& forecast) {
  CLI::App* command = add_client_command(app, call, "forecast",
                                         "Show how many tasks become due in each future span");
  add_duration(*command, "--span", forecast.span)
      ->description("Length of the forecast from now, at least one minute")
      ->default_str("1d");
  add_number(*command, "--bins", forecast.bins, {1, kMaxForecastBins})
      ->description("Number of parts of the forecast");
  asks(*command, call, forecast);
  command->footer("Example:\n  detent forecast --span 7d --bins 28");
}

void add_copies(CLI::App& app, Parsed& parsed) {
  CLI::App* dump = add_client_command(app, parsed.call, "dump",
                                      "Copy all queues, tasks and schedules to a file");
  dump->add_option("FILE", parsed.dump.file, "File to write; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  asks(*dump, parsed.call, parsed.dump);
  dump->footer("Examples:\n  detent dump tasks.ndjson\n  detent dump | zstd > tasks.ndjson.zst");

  CLI::App* restore = add_client_command(app, parsed.call, "restore",
                                         "Restore queues, tasks and schedules from a dump");
  restore->add_option("FILE", parsed.restore.file, "Dump to read; - reads standard input")
      ->required();
  restore->add_flag("--partial", parsed.restore.partial, "Accept a truncated dump");
  asks(*restore, parsed.call, parsed.restore);
  restore->footer(
      "A restore does not change tasks that are already there, so you can repeat it.\n"
      "Examples:\n  detent restore tasks.ndjson\n  zstd -dc tasks.ndjson.zst | detent restore -");
}

void add_any_call(CLI::App& app, ClientCall& call, CallCommand& any) {
  CLI::App* command =
      add_client_command(app, call, "call", "Send any request of the HTTP interface");
  add_parsed<std::string>(*command, "METHOD", parse_method,
                          [&any](std::string method) { any.method = std::move(method); })
      ->description("GET, POST, PUT, PATCH or DELETE")
      ->type_name("GET|POST|PUT|PATCH|DELETE")
      ->required();
  add_parsed<std::string>(*command, "PATH", parse_target,
                          [&any](std::string target) { any.target = std::move(target); })
      ->description("Path of the request, such as /v1/wheel")
      ->required();
  command->add_option("BODY", any.body, "Body of the request; - reads standard input");
  asks(*command, call, any);
  command->footer(
      "The command prints the answer unchanged.\n"
      "Examples:\n"
      "  detent call GET /v1/cluster\n"
      "  detent call POST /v1/tasks/cancel '{\"ids\":[\"512\",\"1024\"]}'\n"
      "  detent call POST /v1/tasks/batch - < tasks.ndjson");
}

void add_token(CLI::App& app, TokenOptions& options) {
  CLI::App* token = app.add_subcommand("token", "Make access tokens for a server");
  token->require_subcommand(1);
  CLI::App* made = token->add_subcommand("new", "Make an access token");
  made->add_option("--name", options.name, "Name of the token, shown to people")
      ->type_name("NAME")
      ->required();
  made->add_option("--scope", options.scopes,
                   "Permission: read, produce, consume or admin for all queues, or SCOPE:PREFIX "
                   "for the queues whose names begin with PREFIX; can be repeated")
      ->type_name("SCOPE")
      ->required();
  made->footer(
      "The token is shown only once. The token file of the server holds its hash.\n"
      "Example:\n  detent token new --name shop --scope produce:orders. --scope consume:orders.");
}

void add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* check = app.add_subcommand("check", "Check the data of a stopped server");
  add_data(*check, options.data, "Data folder of the server");
  add_store(*check, options.store);
  check->add_flag_function(
      "--json", [&options](std::int64_t) { options.format = OutputFormat::json; },
      "Print JSON on one line");
  check->footer(
      "Examples:\n  detent check --data /var/lib/detent\n"
      "  detent check --store postgres://detent@db/detent   # all shards; stop all nodes first");
}

/// Adds `detent completion`, and `detent man`, which --help does not show.
void add_printers(CLI::App& app, Shell& shell) {
  CLI::App* completion =
      app.add_subcommand("completion", "Print the completion script for a shell");
  add_parsed<Shell>(*completion, "SHELL", parse_shell, [&shell](Shell named) { shell = named; })
      ->description("bash, zsh or fish")
      ->type_name("bash|zsh|fish")
      ->required();
  completion->footer(
      "Examples:\n"
      "  source <(detent completion bash)\n"
      "  detent completion fish > ~/.config/fish/completions/detent.fish");
  app.add_subcommand("man", "Print the manual page")->group("");
}

/// Adds the commands that `add` adds under a heading of the help. Hidden commands stay hidden.
template <class Add>
void add_group(CLI::App& app, const char* heading, Add add) {
  const std::size_t before = app.get_subcommands({}).size();
  add();
  const std::vector<CLI::App*> commands = app.get_subcommands({});
  for (std::size_t i = before; i < commands.size(); ++i) {
    if (!commands[i]->get_group().empty()) commands[i]->group(heading);
  }
}

void add_server_commands(CLI::App& app, Parsed& parsed) {
  add_serve(app, parsed.serve, parsed.config, parsed.print_config);
  CLI::App* stats = add_client_command(app, parsed.call, "stats", "Show the counts of the server");
  asks(*stats, parsed.call, parsed.stats);
  stats->footer("Example:\n  detent stats --server http://127.0.0.1:7070");
  add_top(app, parsed.call, parsed.top);
  add_forecast(app, parsed.call, parsed.forecast);
  add_copies(app, parsed);
  add_backup(app, parsed.call, parsed.backup);
  add_restore_backup(app, parsed.restore_backup);
  add_check(app, parsed.check);
  add_token(app, parsed.token);
}

void add_tools(CLI::App& app, Parsed& parsed) {
  add_cron(app, parsed.cron);
  add_bench(app, parsed.call, parsed.bench);
  add_any_call(app, parsed.call, parsed.any_call);
  add_printers(app, parsed.shell);
}

void add_all(CLI::App& app, Parsed& parsed) {
  app.formatter_fn([](const CLI::App* command, const std::string& name, CLI::AppFormatMode) {
    return render_help(read_commands(*command), name);
  });
  app.description("Detent stores delayed tasks durably and hands them out on time.");
  app.set_version_flag("--version", std::string("detent ") + DETENT_VERSION, "Print the version");
  app.require_subcommand(1);
  // Users may also write these options before the command.
  add_call_options(app, parsed.call);
  app.get_option("--server")->envname("DETENT_URL")->description("Address of the server");
  app.get_option("--ca")
      ->envname("DETENT_CA")
      ->description("PEM file with the certificates to trust for https");
  app.get_option("--token")->envname("DETENT_TOKEN")->description("Access token");
  add_group(app, "Tasks", [&] { add_task_commands(app, parsed.call, parsed.task); });
  add_group(app, "Workers", [&] { add_lease_commands(app, parsed.call, parsed.lease); });
  add_group(app, "Queues", [&] { add_queue_commands(app, parsed.call, parsed.queue); });
  add_group(app, "Schedules", [&] { add_schedule(app, parsed.call, parsed.schedule); });
  add_group(app, "Server", [&] { add_server_commands(app, parsed); });
  add_group(app, "Tools", [&] { add_tools(app, parsed); });
  app.footer(
      "Examples:\n"
      "  detent serve\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent lease mail --wait 20s\n"
      "`detent COMMAND --help` shows the options of a command.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found.");
}

/// "a command is required: next, explain"
std::string missing_command(const CommandEntry& known) {
  std::string text = "a command is required:";
  const char* separator = " ";
  for (const CommandEntry& command : known.commands) {
    text += separator + command.name;
    separator = ", ";
  }
  return text;
}

/// The name of an option that was given more than once but may be given once; "" for other errors.
std::string repeated_option(const CLI::App& chosen, const CLI::ParseError& error) {
  if (error.get_name() != "ArgumentMismatch") return "";
  for (const CLI::App* app = &chosen; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_expected_max() == 1 && option->count() > 1) return option->get_name();
    }
  }
  return "";
}

/// "--delay needs a value: DURATION", for an option at the end of the line; "" for other errors.
std::string missing_value(const CLI::ParseError& error) {
  constexpr std::string_view kRequired = ": 1 required ";
  constexpr std::string_view kMissing = " missing";
  const std::string text = error.what();
  const std::size_t required = text.find(kRequired);
  const bool is_missing = error.get_name() == "ArgumentMismatch" && required != std::string::npos &&
                          text.ends_with(kMissing);
  if (!is_missing) return "";
  const std::size_t type = required + kRequired.size();
  const std::string name = text.substr(type, text.size() - kMissing.size() - type);
  // CLI11 writes the range of a number behind its name.
  const bool is_number = name.starts_with("N:");
  return text.substr(0, required) + " needs a value: " + (is_number ? "N" : name);
}

/// Words of other programs, and the commands or options that do the same here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kOtherWords{
    {{"delete", "remove"},
     {"delete", "cancel"},
     {"rm", "remove"},
     {"rm", "cancel"},
     {"remove", "cancel"},
     {"ls", "list"},
     {"show", "get"},
     {"add", "put"},
     {"enqueue", "put"},
     {"push", "put"},
     {"ack", "complete"},
     {"nack", "fail"},
     {"retry", "redrive"},
     {"start", "serve"},
     {"status", "stats"},
     {"version", "--version"}}};

/// "; did you mean 'cancel'?", for a word that is no command. `options` are the options of the
/// program or command whose `commands` are known.
std::string meant_command(const std::string& word, const std::vector<std::string>& commands,
                          const std::vector<OptionEntry>& options) {
  for (const auto& [other, ours] : kOtherWords) {
    const bool is_known = std::ranges::find(commands, ours) != commands.end() ||
                          std::ranges::find(options, ours, &OptionEntry::name) != options.end();
    if (word == other && is_known) return "; did you mean '" + std::string(ours) + "'?";
  }
  return suggestion(word, commands);
}

/// A better message than that of CLI11 for these errors: a repeated option, an option without its
/// value, a missing command, an unknown command or option, an extra argument. Else "".
std::string hint_about(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  if (const std::string repeated = repeated_option(*chosen, error); !repeated.empty()) {
    return repeated + " is given more than once; it may be given once";
  }
  if (std::string missing = missing_value(error); !missing.empty()) return missing;
  const CommandEntry known = read_commands(*chosen);
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) {
    const bool is_missing =
        error.get_name() == "RequiredError" && chosen->get_require_subcommand_min() > 0;
    if (!is_missing) return "";
    return (chosen == &app ? "" : known.name + ": ") + missing_command(known);
  }
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  std::vector<std::string> words;
  if (word.starts_with("-")) {
    words.emplace_back("--help");
    for (const OptionEntry& option : known.options) words.push_back(option.name);
    return "there is no option '" + word + "'" + suggestion(word, words);
  }
  if (known.commands.empty()) return "unexpected argument '" + unknown.front() + "'";
  for (const CommandEntry& command : known.commands) words.push_back(command.name);
  return "there is no command '" + word + "'" + meant_command(word, words, known.options);
}

NothingToRun nothing_to_run(CLI::App& app, const CLI::ParseError& error) {
  show_variables(*app.get_subcommand("serve"));
  std::ostringstream out;
  std::ostringstream err;
  const bool is_done = app.exit(error, out, err) == 0;
  if (is_done) return NothingToRun{ExitCode::done, out.str()};
  const std::string hint = hint_about(app, error);
  return {
      ExitCode::usage,
      "detent: " + (hint.empty() ? err.str() : hint + "\nRun with --help for more information.\n")};
}

/// "localhost:7170" as a URL. A text with a scheme stays as it is.
/// Adds http:// to an address of this machine. For another machine the user must say whether the
/// token may be sent without HTTPS.
std::string with_scheme(std::string server) {
  const auto begins = [&server](std::string_view with) { return server.starts_with(with); };
  return begins("localhost") || begins("127.") || begins("[::1]") ? "http://" + server : server;
}

/// `detent backup` calls the server itself.
Invocation backup_call(Parsed& parsed) {
  parsed.backup.server = with_scheme(std::move(parsed.call.server));
  parsed.backup.token = std::move(parsed.call.token);
  parsed.backup.ca_file = std::move(parsed.call.ca_file);
  parsed.backup.format = parsed.call.format;
  return std::move(parsed.backup);
}

/// Takes the settings that the command line leaves out from the environment and the file.
Invocation serve_call(CLI::App& serve, Parsed& parsed) {
  Result<std::vector<Setting>> settings = fill_settings(serve, parsed.config);
  if (!settings) {
    return NothingToRun{ExitCode::usage, "detent serve: " + settings.error().message + "\n"};
  }
  if (parsed.print_config) return NothingToRun{ExitCode::done, to_toml(*settings)};
  return ServeCall{std::move(parsed.serve), *std::move(settings), unknown_variables(serve)};
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  CLI::App app("", "detent");
  Parsed parsed;
  add_all(app, parsed);
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() == 1) words.push_back("--help");
  if (words.size() > 1 && std::string_view(words[1]) == "help") {
    // `detent help put` becomes `detent put --help`. As a subcommand of CLI11, `help` would need
    // all commands as its own subcommands.
    words.erase(words.begin() + 1);
    const auto is_named = [&words](const CLI::App* one) { return one->check_name(words[1]); };
    const bool is_known = words.size() == 1 || !app.get_subcommands(is_named).empty();
    if (is_known) words.push_back("--help");  // else the error says that there is no such command
  }
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return nothing_to_run(app, error);
  }
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "serve") return serve_call(*app.get_subcommand("serve"), parsed);
  if (name == "check") {
    if (parsed.call.format == OutputFormat::json) parsed.check.format = OutputFormat::json;
    return std::move(parsed.check);
  }
  if (name == "backup") return backup_call(parsed);
  if (name == "restore-backup") {
    if (parsed.call.format == OutputFormat::json) parsed.restore_backup.format = OutputFormat::json;
    return std::move(parsed.restore_backup);
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
  if (name == "schedule") parsed.call.command = std::move(parsed.schedule.chosen);
  parsed.call.server = with_scheme(std::move(parsed.call.server));
  return std::move(parsed.call);
}

}  // namespace detent::cli
