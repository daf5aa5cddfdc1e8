// Describes the commands of workers to CLI11: lease, complete, fail, extend and release.
// commands.cc runs them.
#pragma once

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// The values that the options write to. The user chooses one command; the others keep their
/// defaults.
struct LeaseArguments {
  LeaseCommand lease;
  CompleteCommand complete;
  FailCommand fail;
  ExtendCommand extend;
  ReleaseCommand release;
};

/// Adds the commands to `app`. The chosen command is copied to call.command. All must outlive
/// `app`.
void add_lease_commands(CLI::App& app, ClientCall& call, LeaseArguments& parsed);

}  // namespace detent::cli
