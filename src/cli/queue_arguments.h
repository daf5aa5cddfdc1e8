// Describes the commands for queues to CLI11: queues, pause, resume, purge, redrive, and
// `queue get|set|remove`. commands.cc runs them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/argument_options.h"

namespace detent::cli {

/// The values that the options write to. The user chooses one command; the others keep their
/// defaults.
struct QueueArguments {
  QueuesCommand queues;
  PauseCommand pause;
  ResumeCommand resume;
  PurgeCommand purge;
  RedriveCommand redrive;
  SetQueueCommand set;
  RemoveQueueCommand remove;
  // Options of `set` that together become the webhook of the queue.
  std::optional<std::optional<std::string>> webhook;
  std::vector<std::string> webhook_keys;
};

/// Adds the commands to `app`. The chosen command is copied to call.command. All must outlive
/// `app`.
void add_queue_commands(CLI::App& app, ClientCall& call, QueueArguments& parsed);

}  // namespace detent::cli
