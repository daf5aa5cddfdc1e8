#include "cli/arguments/lease_arguments.h"

#include <chrono>
#include <string>
#include <vector>

#include "cli/arguments/argument_values.h"
#include "task/limits.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

void add_lease(CLI::App& app, ClientCall& call, LeaseCommand& lease) {
  CLI::App* command = add_client_command(app, call, "lease", "Lease due tasks");
  command->add_option("QUEUE", lease.queue, "Name of the queue")->required();
  add_number(*command, "--max", lease.options.max, {1, kMaxLeaseTasks})
      ->description("Largest number of tasks to lease");
  add_duration(*command, "--wait", lease.options.wait)
      ->description("How long to wait if no task is ready, at most 60s")
      ->check(
          [](const std::string& text) {
            return parse_any_duration(text).value_or(milliseconds::max()) <= kMaxLeaseWait
                       ? ""
                       : "must be at most 60s";
          },
          "")
      ->default_str("0s");
  add_duration(*command, "--visibility-timeout", lease.options.visibility_timeout)
      ->description(
          "How long the leases last; default: the setting of the task, else of the queue");
  command->add_option("--worker", lease.options.worker, "Name of the worker, shown to people")
      ->type_name("NAME");
  asks(*command, call, lease);
  command->footer("Example:\n  detent lease mail --max 10 --wait 20s");
}

/// Adds a command that takes leases as `detent lease` printed them.
CLI::App* add_of_leases(CLI::App& app, ClientCall& call, const char* name, const char* what,
                        std::vector<std::string>& leases) {
  CLI::App* command = add_client_command(app, call, name, what);
  command->add_option("LEASE", leases, "Leases as printed by `detent lease`")->required();
  return command;
}

void add_by_lease(CLI::App& app, ClientCall& call, LeaseArguments& parsed) {
  CLI::App* complete =
      add_of_leases(app, call, "complete", "Report tasks as done", parsed.complete.leases);
  asks(*complete, call, parsed.complete);
  complete->footer("Example:\n  detent complete 3-17 3-18");

  CLI::App* fail = add_of_leases(
      app, call, "fail", "Report failed attempts; the tasks come back later", parsed.fail.leases);
  add_duration(*fail, "--delay", parsed.fail.options.delay)
      ->description("Make the tasks due again after this time; default: the backoff of each task");
  fail->add_option("--error", parsed.fail.options.error, "Reason of the failure, shown to people")
      ->type_name("TEXT");
  fail->add_flag("--final", parsed.fail.options.final,
                 "Make the tasks dead now, because further attempts are useless")
      ->excludes("--delay");
  asks(*fail, call, parsed.fail);
  fail->footer("Example:\n  detent fail 3-17 --error 'no route to host' --delay 5m");

  CLI::App* extend = add_of_leases(app, call, "extend", "Keep leases longer", parsed.extend.leases);
  add_duration(*extend, "--by", parsed.extend.by)
      ->description("Let the leases expire after this time from now, but not earlier than before")
      ->required();
  asks(*extend, call, parsed.extend);
  extend->footer("Example:\n  detent extend 3-17 --by 5m");

  CLI::App* release = add_of_leases(
      app, call, "release", "Give tasks back without spending an attempt", parsed.release.leases);
  add_duration(*release, "--delay", parsed.release.options.delay)
      ->description("Make the tasks due again after this time; default: immediately");
  add_priority(*release, parsed.release.options.priority);
  asks(*release, call, parsed.release);
  release->footer("Example:\n  detent release 3-17 --delay 1m");
}

}  // namespace

void add_lease_commands(CLI::App& app, ClientCall& call, LeaseArguments& parsed) {
  add_lease(app, call, parsed.lease);
  add_by_lease(app, call, parsed);
}

}  // namespace detent::cli
