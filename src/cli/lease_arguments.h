// The command lines of workers, read by CLI11: lease, complete, fail, extend and release. What they
// do stands in commands.cc.
#pragma once

#include "cli/argument_options.h"

namespace detent::cli {

/// What the options write to. One command is chosen; the others keep their defaults.
struct LeaseArguments {
  LeaseCommand lease;
  CompleteCommand complete;
  FailCommand fail;
  ExtendCommand extend;
  ReleaseCommand release;
};

/// The one that is chosen becomes call.command. All must outlive `app`.
void add_lease_commands(CLI::App& app, ClientCall& call, LeaseArguments& parsed);

}  // namespace detent::cli
