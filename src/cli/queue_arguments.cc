#include "cli/queue_arguments.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/argument_values.h"

namespace detent::cli {

namespace {

using json::QueuePatch;
using std::chrono::milliseconds;

/// Any text: the server says what is wrong with it.
Result<std::string> parse_text(const std::string& text) { return text; }

/// What `parse` reads, or the word "default", which is nothing.
template <class T, Result<T> (*parse)(const std::string&)>
Result<std::optional<T>> or_default(const std::string& text) {
  if (text == "default") return std::optional<T>();
  ASSIGN_OR_RETURN(T value, parse(text));
  return std::optional<T>(std::move(value));
}

/// What holds nothing as such, or has `otherwise` for it.
template <class Value, class T>
Value setting_of(std::optional<T> read, const T& otherwise) {
  if constexpr (std::is_same_v<Value, T>) {
    return std::move(read).value_or(otherwise);
  } else {
    return read;
  }
}

/// A setting that may go back to its default. Into `value`, or into what holds a default itself.
template <class T, Result<T> (*parse)(const std::string&), class Value>
void add_setting(CLI::App& command, const char* name, const char* type, const char* what,
                 QueuePatch::NewValue<Value>& value, const T& otherwise = {}) {
  add_parsed<std::optional<T>>(command, name, or_default<T, parse>,
                               [&value, otherwise](std::optional<T> read) {
                                 value = setting_of<Value>(std::move(read), otherwise);
                               })
      ->type_name(type)
      ->description(what);
}

void add_limits(CLI::App& command, QueuePatch& patch) {
  add_setting<std::uint64_t, parse_count>(command, "--max-tasks", "N",
                                          "most tasks it holds; more are refused", patch.max_tasks);
  add_setting<std::uint64_t, parse_count>(command, "--max-bytes", "N",
                                          "most bytes of payload it holds", patch.max_bytes);
  add_setting<std::uint32_t, parse_small_count>(command, "--rate", "N",
                                                "most tasks handed out in a second", patch.rate);
  add_setting<std::uint32_t, parse_small_count>(command, "--concurrency", "N",
                                                "most tasks leased at a time", patch.concurrency);
  add_setting<std::uint32_t, parse_small_count>(
      command, "--partitions", "N", "parts of a new queue, each on a shard of a cluster",
      patch.partitions, std::uint32_t{1});
}

void add_times(CLI::App& command, QueuePatch& patch) {
  add_setting<Backoff, parse_backoff>(command, "--backoff", "FIRST..MOST",
                                      "rest after a failed attempt, at first and at most: 5s..1h",
                                      patch.backoff);
  add_setting<milliseconds, parse_any_duration>(command, "--visibility-timeout", "DURATION",
                                                "how long a lease lasts", patch.visibility_timeout);
  const QueueSettings otherwise;
  add_setting<milliseconds, parse_any_duration>(command, "--retention", "DURATION",
                                                "how long a task is kept after its end",
                                                patch.retention, otherwise.retention);
  add_setting<milliseconds, parse_any_duration>(
      command, "--key-retention", "DURATION",
      "how long the key of a task that has ended stands for it", patch.key_retention,
      otherwise.key_retention);
}

/// What of the options is the queue's new webhook: nothing, or none, or one with its keys.
QueuePatch::NewValue<std::optional<QueueWebhook>> webhook_of(const QueueArguments& parsed) {
  if (!parsed.webhook) return std::nullopt;
  if (!*parsed.webhook) return std::make_optional(std::optional<QueueWebhook>());
  return std::make_optional(
      std::make_optional(QueueWebhook{.url = **parsed.webhook, .keys = parsed.webhook_keys}));
}

void add_set(CLI::App& queue, ClientCall& call, QueueArguments& parsed) {
  CLI::App* command = add_client_command(queue, call, "set", "change settings of a queue");
  command->add_option("QUEUE", parsed.set.queue, "name of the queue; made when it is not there")
      ->required();
  QueuePatch& patch = parsed.set.patch;
  add_parsed<bool>(*command, "--paused", parse_yes_or_no, [&patch](bool is) { patch.paused = is; })
      ->type_name("yes|no")
      ->description("hand out nothing of it");
  add_setting<std::uint32_t, parse_small_count>(
      *command, "--max-attempts", "N", "attempts before a task is dead", patch.max_attempts);
  add_times(*command, patch);
  add_limits(*command, patch);
  add_setting<std::string, parse_webhook>(*command, "--webhook", "URL",
                                          "deliver its tasks there; no worker leases them",
                                          parsed.webhook);
  command
      ->add_option("--webhook-key", parsed.webhook_keys,
                   "sign them with this whsec_… key, not with the server's; may be given again")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->needs("--webhook");
  add_setting<std::string, parse_text>(*command, "--sink", "NAME",
                                       "hand its tasks on to this broker of --sinks", patch.sink);
  command->callback([&call, &parsed] {
    parsed.set.patch.webhook = webhook_of(parsed);
    if (parsed.set.patch == QueuePatch{}) throw CLI::RequiredError("A setting");
    call.command = parsed.set;
  });
  command->footer(
      "The word default takes any of them but --paused back to its default.\n"
      "Examples:\n"
      "  detent queue set mail --rate 50 --retention 1d\n"
      "  detent queue set mail --rate default");
}

void add_queue(CLI::App& app, ClientCall& call, QueueArguments& parsed) {
  CLI::App* queue = app.add_subcommand("queue", "settings of a queue");
  queue->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, std::string& to) {
    CLI::App* command = add_client_command(*queue, call, name, what);
    command->add_option("QUEUE", to, "name of the queue")->required();
    return command;
  };
  CLI::App* get = add("get", "show a queue with the settings in force", parsed.queues.queue);
  asks(*get, call, parsed.queues);
  get->footer("Example:\n  detent queue get mail");
  add_set(*queue, call, parsed);
  CLI::App* remove = add("remove", "forget an empty queue and its settings", parsed.remove.queue);
  asks(*remove, call, parsed.remove);
  remove->footer("Example:\n  detent queue remove mail");
}

}  // namespace

void add_queue_commands(CLI::App& app, ClientCall& call, QueueArguments& parsed) {
  const auto add = [&](const char* name, const char* what, auto& asked) {
    CLI::App* command = add_client_command(app, call, name, what);
    command->add_option("QUEUE", asked.queue, "name of the queue")->required();
    asks(*command, call, asked);
    return command;
  };
  CLI::App* queues =
      add_client_command(app, call, "queues", "show all queues, or one with its settings");
  queues->add_option("QUEUE", parsed.queues.queue, "name of the queue; left out: all");
  asks(*queues, call, parsed.queues);
  queues->footer("Examples:\n  detent queues\n  detent queues mail");
  add_queue(app, call, parsed);
  add("pause", "hand out nothing of a queue", parsed.pause)
      ->footer("Example:\n  detent pause mail");
  add("resume", "hand out what is ready again", parsed.resume)
      ->footer("Example:\n  detent resume mail");
  CLI::App* purge = add("purge", "remove all tasks of a queue not leased", parsed.purge);
  purge->add_flag("--yes", parsed.purge.yes, "do not ask whether that is meant");
  purge->footer("Example:\n  detent purge mail --yes");
  add("redrive", "make all dead tasks of a queue due now", parsed.redrive)
      ->footer("Example:\n  detent redrive mail");
}

}  // namespace detent::cli
