// The command line of `detent cron` and its commands, read by CLI11.
#pragma once

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// The values that the options write to.
struct CronArguments {
  CronCall call;  // without `next`, and without a --json before the command
  CronNextCommand next;
};

/// `parsed` must outlive `app`.
void add_cron(CLI::App& app, CronArguments& parsed);
/// Returns the chosen command after the line was read. `format` is json if --json stands before the
/// command. Requires: `app` has read `detent cron …`.
CronCall chosen_cron(const CLI::App& app, CronArguments& parsed, OutputFormat format);

}  // namespace detent::cli
