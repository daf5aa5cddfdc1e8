// Describes the commands for queues to CLI11: queues, pause, resume, purge, redrive, and
// `queue get|set|remove`. commands.cc runs them.
#pragma once

#include "cli/arguments/argument_options.h"

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
};

/// Adds the commands to `app`. The chosen command is copied to call.command. All must outlive
/// `app`.
void add_queue_commands(CLI::App& app, ClientCall& call, QueueArguments& parsed);

}  // namespace detent::cli
