// Describes `detent top` and `detent bench` to CLI11.
#pragma once

#include "cli/arguments/argument_options.h"

namespace detent::cli {

/// `call` and the commands must outlive `app`.
void add_top(CLI::App& app, ClientCall& call, TopCommand& top);
void add_bench(CLI::App& app, ClientCall& call, BenchCommand& bench);

}  // namespace detent::cli
