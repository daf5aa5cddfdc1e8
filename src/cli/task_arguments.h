// The command lines that make, show and change tasks, read by CLI11: put, get, cancel, move, edit,
// run and list. What they do stands in commands.cc.
#pragma once

#include "cli/argument_options.h"

namespace detent::cli {

/// What the options write to. One command is chosen; the others keep their defaults.
struct TaskArguments {
  PutCommand put;
  GetCommand get;
  CancelCommand cancel;
  MoveCommand move;
  EditCommand edit;
  RunCommand run;
  ListCommand list;
};

/// The one that is chosen becomes call.command. All must outlive `app`.
void add_task_commands(CLI::App& app, ClientCall& call, TaskArguments& parsed);

}  // namespace detent::cli
