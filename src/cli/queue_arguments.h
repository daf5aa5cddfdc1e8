// The command lines about queues, read by CLI11: queues, pause, resume, purge and redrive, and
// `queue get|set|remove`. What they do stands in commands.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/argument_options.h"

namespace detent::cli {

/// What the options write to. One command is chosen; the others keep their defaults.
struct QueueArguments {
  QueuesCommand queues;
  PauseCommand pause;
  ResumeCommand resume;
  PurgeCommand purge;
  RedriveCommand redrive;
  SetQueueCommand set;
  RemoveQueueCommand remove;
  // Of `set`, which become its webhook together:
  std::optional<std::optional<std::string>> webhook;
  std::vector<std::string> webhook_keys;
};

/// The one that is chosen becomes call.command. All must outlive `app`.
void add_queue_commands(CLI::App& app, ClientCall& call, QueueArguments& parsed);

}  // namespace detent::cli
