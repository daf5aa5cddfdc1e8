#include "cli/arguments/queue_arguments.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/arguments/argument_values.h"

namespace detent::cli {

namespace {

using client::QueueChange;
using std::chrono::milliseconds;

/// The server checks the name.
Result<std::string> parse_sink(const std::string& text) {
  if (!text.empty()) return text;
  return Error{ErrorCode::invalid_argument, "must be a name from the server's --sinks file", ""};
}

/// The value that `parse` reads, or nothing for the word "default".
template <class T, Result<T> (*parse)(const std::string&)>
Result<std::optional<T>> or_default(const std::string& text) {
  if (text == "default") return std::optional<T>();
  ASSIGN_OR_RETURN(T value, parse(text));
  return std::optional<T>(std::move(value));
}

/// Converts a read value to the type of the setting. If this type is an optional, "default" stays
/// empty. Else "default" becomes `otherwise`.
template <class Value, class T>
Value setting_of(std::optional<T> read, const T& otherwise) {
  if constexpr (std::is_same_v<Value, T>) {
    return std::move(read).value_or(otherwise);
  } else {
    return read;
  }
}

/// Adds an option for a setting that the word "default" resets. `otherwise` is the default if the
/// type of the setting has no empty value.
template <class T, Result<T> (*parse)(const std::string&), class Value>
void add_setting(CLI::App& command, const char* name, const char* type, const char* what,
                 std::optional<Value>& value, const T& otherwise = {}) {
  add_parsed<std::optional<T>>(command, name, or_default<T, parse>,
                               [&value, otherwise](std::optional<T> read) {
                                 value = setting_of<Value>(std::move(read), otherwise);
                               })
      ->type_name(type)
      ->description(what);
}

void add_limits(CLI::App& command, QueueChange& change) {
  add_setting<std::uint64_t, parse_number_of>(
      command, "--max-tasks", "N", "Largest number of tasks in the queue; more tasks are refused",
      change.max_tasks);
  add_setting<std::uint64_t, parse_number_of>(command, "--max-bytes", "N",
                                              "Largest number of payload bytes in the queue",
                                              change.max_bytes);
  add_setting<std::uint32_t, parse_number_of>(
      command, "--rate", "N", "Largest number of tasks handed out per second", change.rate);
  add_setting<std::uint32_t, parse_number_of>(command, "--concurrency", "N",
                                              "Largest number of leased tasks", change.concurrency);
  add_setting<std::uint32_t, parse_number_of>(
      command, "--partitions", "N",
      "Number of parts of a new queue, each on its own shard of a cluster", change.partitions,
      std::uint32_t{1});
}

void add_times(CLI::App& command, QueueChange& change) {
  add_setting<client::Backoff, parse_backoff>(
      command, "--backoff", "FIRST..MOST",
      "First and longest wait after a failed attempt, such as 5s..1h", change.backoff);
  add_setting<milliseconds, parse_any_duration>(command, "--visibility-timeout", "DURATION",
                                                "How long a lease lasts",
                                                change.visibility_timeout);
  const client::QueueSettings otherwise;
  add_setting<milliseconds, parse_any_duration>(command, "--retention", "DURATION",
                                                "How long the server keeps a task after its end",
                                                change.retention, otherwise.retention);
  add_setting<milliseconds, parse_any_duration>(
      command, "--key-retention", "DURATION",
      "How long the server keeps the key of a task after its end", change.key_retention,
      otherwise.key_retention);
}

void add_set(CLI::App& queue, ClientCall& call, QueueArguments& parsed) {
  CLI::App* command = add_client_command(queue, call, "set", "Change settings of a queue");
  command->add_option("QUEUE", parsed.set.queue, "Name of the queue; created if it does not exist")
      ->required();
  QueueChange& change = parsed.set.change;
  add_parsed<bool>(*command, "--paused", parse_yes_or_no,
                   [&change](bool is) { change.paused = is; })
      ->type_name("yes|no")
      ->description("Stop (yes) or start (no) handing out its tasks");
  add_setting<std::uint32_t, parse_number_of>(*command, "--max-attempts", "N",
                                              "Number of attempts before a task is dead",
                                              change.max_attempts);
  add_times(*command, change);
  add_limits(*command, change);
  add_setting<std::string, parse_webhook>(
      *command, "--webhook", "URL", "Deliver the tasks to this URL; workers cannot lease them",
      change.webhook);
  command
      ->add_option("--webhook-key", change.webhook_keys,
                   "Sign the requests with this whsec_… key instead of the key of the server; can "
                   "be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->needs("--webhook");
  add_setting<std::string, parse_sink>(*command, "--sink", "NAME",
                                       "Send the tasks to this broker of the server's --sinks file",
                                       change.sink);
  command->callback([&call, &parsed] {
    if (parsed.set.change == QueueChange{}) throw CLI::RequiredError("at least one setting");
    call.command = parsed.set;
  });
  command->footer(
      "The value default resets a setting to its default, except --paused.\n"
      "Examples:\n"
      "  detent queue set mail --rate 50 --retention 1d\n"
      "  detent queue set mail --rate default");
}

void add_queue(CLI::App& app, ClientCall& call, QueueArguments& parsed) {
  CLI::App* queue =
      app.add_subcommand("queue", "Show or change the settings of a queue, or remove it");
  queue->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, std::string& to) {
    CLI::App* command = add_client_command(*queue, call, name, what);
    command->add_option("QUEUE", to, "Name of the queue")->required();
    return command;
  };
  CLI::App* get = add("get", "Show a queue and its settings", parsed.queues.queue);
  asks(*get, call, parsed.queues);
  get->footer("Example:\n  detent queue get mail");
  add_set(*queue, call, parsed);
  CLI::App* remove = add("remove", "Remove an empty queue and its settings", parsed.remove.queue);
  asks(*remove, call, parsed.remove);
  remove->footer("Example:\n  detent queue remove mail");
}

/// The options of a list. The server checks the words, so that a newer server can know more.
void add_queue_list(CLI::App& command, QueuesCommand& queues) {
  CLI::Option* queue = command.get_option("QUEUE");
  const auto add = [&](const char* name, std::string& value, const char* what) {
    return command.add_option(name, value, what)->excludes(queue);
  };
  add("--sort", queues.sort, "Sort by name, or by a count, the highest first; tasks is their sum")
      ->type_name("name|scheduled|ready|leased|dead|tasks");
  add("--state", queues.state,
      "Show only paused queues, queues with tasks in this state, or empty queues")
      ->type_name("paused|scheduled|ready|leased|dead|empty");
  add("--name", queues.name, "Show only queues whose name contains this text")->type_name("TEXT");
  add_number(command, "--limit", queues.limit, {.least = 1})
      ->description("Largest number of queues to show; default: all")
      ->excludes(queue);
  add("--cursor", queues.cursor, "Continue an earlier list at the cursor that it printed")
      ->type_name("CURSOR");
}

}  // namespace

void add_queue_commands(CLI::App& app, ClientCall& call, QueueArguments& parsed) {
  const auto add = [&](const char* name, const char* what, auto& asked) {
    CLI::App* command = add_client_command(app, call, name, what);
    command->add_option("QUEUE", asked.queue, "Name of the queue")->required();
    asks(*command, call, asked);
    return command;
  };
  CLI::App* queues =
      add_client_command(app, call, "queues", "Show all queues, or one with its settings");
  queues->add_option("QUEUE", parsed.queues.queue, "Name of the queue; default: all queues");
  add_queue_list(*queues, parsed.queues);
  asks(*queues, call, parsed.queues);
  queues->footer(
      "Examples:\n"
      "  detent queues\n"
      "  detent queues mail\n"
      "  detent queues --state dead --sort dead --limit 20");
  add_queue(app, call, parsed);
  add("pause", "Stop handing out the tasks of a queue", parsed.pause)
      ->footer("Example:\n  detent pause mail");
  add("resume", "Hand out the tasks of a paused queue again", parsed.resume)
      ->footer("Example:\n  detent resume mail");
  CLI::App* purge = add("purge", "Remove all tasks of a queue, except leased tasks", parsed.purge);
  purge->add_flag("--yes", parsed.purge.yes, "Do not ask for confirmation");
  purge->footer("Example:\n  detent purge mail --yes");
  add("redrive", "Make all dead tasks of a queue due now", parsed.redrive)
      ->footer("Example:\n  detent redrive mail");
}

}  // namespace detent::cli
