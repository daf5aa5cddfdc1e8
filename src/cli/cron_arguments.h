// The command line of `detent cron` and its commands, read by CLI11.
#pragma once

#include "cli/argument_options.h"

namespace detent::cli {

/// What the options write to.
struct CronArguments {
  CronCall call;  // but for `next`, and its format when --json stands before the command
  CronNextCommand next;
};

/// `parsed` must outlive `app`.
void add_cron(CLI::App& app, CronArguments& parsed);
/// What was asked for, once the line has been read. Requires: `app` read `detent cron …`. `format`
/// is what --json before the command has chosen.
CronCall chosen_cron(const CLI::App& app, CronArguments& parsed, OutputFormat format);

}  // namespace detent::cli
