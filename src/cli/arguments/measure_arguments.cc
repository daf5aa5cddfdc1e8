#include "cli/arguments/measure_arguments.h"

#include <chrono>
#include <cstddef>

#include "task/limits.h"

namespace detent::cli {

using std::chrono::milliseconds;

void add_top(CLI::App& app, ClientCall& call, TopCommand& top) {
  CLI::App* command =
      add_client_command(app, call, "top", "Watch the server: rates, lateness, queues");
  command->add_flag(
      "--once", top.once,
      "Print one update and exit; its rates are averages since the start of the server");
  add_parsed<milliseconds>(*command, "--interval", parse_look_interval,
                           [&top](milliseconds interval) { top.interval = interval; })
      ->description("Time between two updates, 100ms to 1h")
      ->type_name("DURATION")
      ->default_str("1s");
  asks(*command, call, top);
  command->footer(
      "On a terminal, the keys r, l, s, w, d and n sort the queues, and q quits. In a pipe, each "
      "update is one line.\n"
      "Examples:\n  detent top\n  detent top --once\n  detent top --json --interval 10s");
}

void add_bench(CLI::App& app, ClientCall& call, BenchCommand& bench) {
  constexpr std::size_t kMostTasks = 100'000'000;
  constexpr std::size_t kMostConnections = 256;
  CLI::App* command = add_client_command(app, call, "bench", "Measure the speed of the server");
  command->add_option("--queue", bench.queue, "Name of an empty queue or a new queue")
      ->type_name("QUEUE")
      ->capture_default_str();
  add_number(*command, "--tasks", bench.tasks, {1, kMostTasks})
      ->description("Number of tasks to put, lease and complete");
  add_number(*command, "--batch", bench.batch, {1, kMaxLeaseTasks})
      ->description("Number of tasks per call");
  add_number(*command, "--connections", bench.connections, {1, kMostConnections})
      ->description("Number of concurrent connections");
  add_number(*command, "--payload-bytes", bench.payload_bytes, {0, kMaxPayloadBytes})
      ->description("Size of each payload in bytes");
  asks(*command, call, bench);
  command->footer(
      "Each connection waits for its answer before it sends the next call. If a call fails, the "
      "tasks that were put before stay in the queue.\n"
      "Examples:\n  detent bench\n  detent bench --tasks 1000000 --batch 1000 --connections 8");
}

}  // namespace detent::cli
