#include "cli/arguments/task_arguments.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/arguments/argument_values.h"
#include "client/client_values.h"
#include "task/limits.h"

namespace detent::cli {

template <>
inline constexpr std::size_t kCount<client::NewTask::OnKey> = 3;

namespace {

/// Adds the options that name a task: its id, or its queue and key.
Choice add_task_name(CLI::App& command, client::TaskName& task) {
  const auto as_key = [&task]() -> client::TaskKey& {
    if (!std::holds_alternative<client::TaskKey>(task)) task = client::TaskKey{};
    return std::get<client::TaskKey>(task);
  };
  CLI::Option* id = add_parsed<std::uint64_t>(command, "ID", parse_id,
                                              [&task](std::uint64_t value) { task = value; });
  id->description("Id of the task");
  CLI::Option* queue = command.add_option_function<std::string>(
      "--queue", [as_key](const std::string& name) { as_key().queue = name; },
      "Queue of the task; use it with --key instead of ID");
  CLI::Option* key = command.add_option_function<std::string>(
      "--key", [as_key](const std::string& text) { as_key().key = text; },
      "Key of the task in this queue");
  queue->type_name("QUEUE")->needs(key)->excludes(id);
  key->type_name("KEY")->needs(queue);
  return {{id, queue}, "ID, or --queue and --key,"};
}

/// Adds --webhook, with the parser `parse`, and --header. The functions get the values.
void add_webhook(CLI::App& command, Result<std::string> (*parse)(const std::string&),
                 std::function<void(std::string)> take_webhook,
                 std::function<void(client::Header)> take_header) {
  add_parsed<std::string>(command, "--webhook", parse, std::move(take_webhook))
      ->type_name("URL")
      ->description("Deliver the task to this URL; workers cannot lease it");
  command
      .add_option_function<std::vector<std::string>>(
          "--header",
          [take_header = std::move(take_header)](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) take_header(*parse_header(text));
          },
          "Send this header with the request of the webhook; can be repeated")
      ->type_name("NAME: VALUE")
      ->allow_extra_args(false)
      ->check(
          [](const std::string& text) {
            const Result<client::Header> header = parse_header(text);
            return header ? std::string() : header.error().message;
          },
          "");
}

void add_put(CLI::App& app, ClientCall& call, PutCommand& put) {
  CLI::App* command = add_client_command(app, call, "put", "Schedule a task");
  command->add_option("QUEUE", put.task.queue, "Name of the queue")->required();
  command->add_option("PAYLOAD", put.payload,
                      "JSON, or other text as bytes; text that begins like JSON must be JSON, "
                      "unless --bytes is given; - reads standard input");
  command->add_flag("--bytes", put.bytes,
                    "Treat the payload as bytes, even if it is or begins like JSON");
  add_due(*command, put.task.due);
  CLI::Option* const key =
      command
          ->add_option("--key", put.task.key,
                       "Name of the task in its queue; a second put with it gives the same task")
          ->type_name("KEY");
  CLI::Option* const on_key = add_word<client::NewTask::OnKey>(
      *command, "--on-key", [&put](client::NewTask::OnKey on_key) { put.task.on_key = on_key; });
  on_key
      ->description(
          "What happens if the key already has a task: replace changes the task, postpone "
          "changes only its due time")
      ->needs(key)
      ->default_str("keep");
  add_duration(*command, "--max-wait", put.task.max_wait)
      ->description("Longest time from the first put of the key until its task is due")
      ->needs(on_key);
  add_priority(*command, put.task.priority);
  add_number(*command, "--max-attempts", put.task.max_attempts, {1, kMaxAttempts})
      ->description("Number of attempts before the task is dead");
  add_duration(*command, "--visibility-timeout", put.task.visibility_timeout)
      ->description("How long a lease of the task lasts; default: the setting of its queue");
  add_parsed<client::Backoff>(
      *command, "--backoff", parse_backoff,
      [&put](const client::Backoff& backoff) { put.task.backoff = backoff; })
      ->type_name("FIRST..MOST")
      ->description("First and longest wait after a failed attempt, such as 5s..1h");
  add_webhook(
      *command, parse_webhook, [&put](std::string url) { put.task.webhook = std::move(url); },
      [&put](client::Header header) { put.task.headers.push_back(std::move(header)); });
  asks(*command, call, put);
  command->footer(
      "Examples:\n"
      "  detent put mail '{\"to\":\"ada@example.org\"}' --delay 30s\n"
      "  detent put reports --due-at 2030-01-01T09:00:00Z --max-attempts 5\n"
      "  detent put orders '{\"cancel\":1001}' --delay 30m --key o-1001\n"
      "  detent put calls --webhook https://example.org/hook --header 'X-Tenant: a'\n"
      "  head -c 32 /dev/urandom | detent put blobs - --bytes");
}

void add_edit(CLI::App& app, ClientCall& call, EditCommand& edit) {
  CLI::App* command = add_client_command(app, call, "edit", "Change a task that is not leased");
  const Choice name = add_task_name(*command, edit.task);
  Choice change = add_due(*command, edit.edit.due);
  change.names =
      "at least one of --payload, --priority, --delay, --due-at, --webhook, --header and "
      "--no-headers";
  command->add_option("--payload", edit.payload, "New payload, as for put; - reads standard input")
      ->type_name("PAYLOAD");
  command
      ->add_flag("--bytes", edit.bytes,
                 "Treat the payload as bytes, even if it is or begins like JSON")
      ->needs("--payload");
  add_priority(*command, edit.edit.priority);
  add_webhook(
      *command, parse_webhook_or_none,
      [&edit](std::string url) { edit.edit.webhook = std::move(url); },
      [&edit](client::Header header) {
        if (!edit.edit.headers) edit.edit.headers.emplace();
        edit.edit.headers->push_back(std::move(header));
      });
  command->get_option("--webhook")
      ->description("Deliver the task to this URL; none uses the webhook of its queue");
  command->get_option("--header")
      ->description("Replace all headers with this header; can be repeated");
  command
      ->add_flag_function(
          "--no-headers", [&edit](std::int64_t) { edit.edit.headers.emplace(); },
          "Remove all headers")
      ->excludes("--header");
  for (const char* each : {"--payload", "--priority", "--webhook", "--header", "--no-headers"}) {
    change.options.push_back(command->get_option(each));
  }
  asks(*command, call, edit, {name, change});
  command->footer(
      "Examples:\n"
      "  detent edit 1024 --priority 1\n"
      "  detent edit --queue orders --key o-1001 --payload '{\"cancel\":1001}' --delay 2h");
}

void add_of_a_task(CLI::App& app, ClientCall& call, TaskArguments& parsed) {
  CLI::App* get = add_client_command(app, call, "get", "Show a task");
  asks(*get, call, parsed.get, {add_task_name(*get, parsed.get.task)});
  get->footer("Examples:\n  detent get 1024 --json\n  detent get --queue orders --key o-1001");

  CLI::App* cancel = add_client_command(app, call, "cancel", "Remove a task that is not leased");
  asks(*cancel, call, parsed.cancel, {add_task_name(*cancel, parsed.cancel.task)});
  cancel->footer("Examples:\n  detent cancel 1024\n  detent cancel --queue orders --key o-1001");

  CLI::App* move = add_client_command(app, call, "move", "Give a task another due time");
  asks(*move, call, parsed.move,
       {add_task_name(*move, parsed.move.task), add_due(*move, parsed.move.due)});
  move->footer(
      "A dead task becomes live again.\n"
      "Examples:\n"
      "  detent move 1024 --delay 2h\n"
      "  detent move --queue orders --key o-1001 --due-at 2030-01-01T09:00:00Z");

  add_edit(app, call, parsed.edit);

  CLI::App* run = add_client_command(app, call, "run", "Make a task due now");
  add_parsed<std::uint64_t>(*run, "ID", parse_id,
                            [&parsed](std::uint64_t id) { parsed.run.id = id; })
      ->description("Id of the task")
      ->required();
  asks(*run, call, parsed.run);
  run->footer("A dead task becomes live again.\nExample:\n  detent run 1024");
}

void add_list(CLI::App& app, ClientCall& call, ListCommand& list) {
  CLI::App* command = add_client_command(app, call, "list", "Show tasks in due order");
  client::ListOptions& options = list.options;
  command->add_option("--queue", options.queue, "Show only tasks of this queue")
      ->type_name("QUEUE");
  add_parsed<client::TaskState>(*command, "--state", parse_state,
                                [&options](client::TaskState state) { options.state = state; })
      ->description("Show only tasks in this state")
      ->type_name("scheduled|ready|leased|dead|completed|cancelled");
  command->add_option("--key", options.key, "Show only tasks with this key")->type_name("KEY");
  add_parsed<WallTime>(*command, "--due-after", parse_due_at,
                       [&options](WallTime at) { options.due_after = at; })
      ->description(
          "Show only tasks due at this time or later: RFC 3339, a date, or milliseconds since "
          "1970; "
          "a date is its start in UTC")
      ->type_name("TIME");
  add_parsed<WallTime>(*command, "--due-before", parse_due_at,
                       [&options](WallTime at) { options.due_before = at; })
      ->description("Show only tasks due before this time; a date is its start in UTC")
      ->type_name("TIME");
  add_number(*command, "--limit", options.limit, {.least = 1})
      ->description("Largest number of tasks to show");
  asks(*command, call, list);
  command
      ->add_option("--cursor", options.cursor,
                   "Continue an earlier list at the cursor that it printed")
      ->type_name("CURSOR");
  command->footer(
      "Examples:\n"
      "  detent list --queue mail --state dead\n"
      "  detent list --due-before 2030-01-01T00:00:00Z --limit 1000 --json");
}

}  // namespace

void add_task_commands(CLI::App& app, ClientCall& call, TaskArguments& parsed) {
  add_put(app, call, parsed.put);
  add_of_a_task(app, call, parsed);
  add_list(app, call, parsed.list);
}

}  // namespace detent::cli
