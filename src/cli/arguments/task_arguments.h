// Describes the commands for tasks to CLI11: put, get, cancel, move, edit, run and list.
// commands.cc runs them.
#pragma once

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// The values that the options write to. The user chooses one command; the others keep their
/// defaults.
struct TaskArguments {
  PutCommand put;
  GetCommand get;
  CancelCommand cancel;
  MoveCommand move;
  EditCommand edit;
  RunCommand run;
  ListCommand list;
};

/// Adds the commands to `app`. The chosen command is copied to call.command. All must outlive
/// `app`.
void add_task_commands(CLI::App& app, ClientCall& call, TaskArguments& parsed);

}  // namespace detent::cli
