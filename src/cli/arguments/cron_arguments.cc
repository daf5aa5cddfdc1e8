#include "cli/arguments/cron_arguments.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace detent::cli {

namespace {

constexpr std::size_t kMaxCronTimes = 10'000;

CLI::App* add_cron_command(CLI::App& cron, CronArguments& parsed, const char* name,
                           const char* what) {
  CLI::App* command = cron.add_subcommand(name, what);
  command->add_option("EXPRESSION", parsed.call.expression, "Cron expression, in quotes")
      ->required();
  command
      ->add_option("--zone", parsed.call.zone, "Time zone of the expression, such as Europe/Berlin")
      ->type_name("ZONE")
      ->capture_default_str();
  command->add_flag_function(
      "--json", [&parsed](std::int64_t) { parsed.call.format = OutputFormat::json; },
      "Print JSON on one line");
  return command;
}

}  // namespace

void add_cron(CLI::App& app, CronArguments& parsed) {
  CLI::App* cron =
      app.add_subcommand("cron", "Print the dates of a cron expression, or explain it");
  cron->require_subcommand(1);
  CLI::App* next =
      add_cron_command(*cron, parsed, "next", "Print the next dates of a cron expression");
  add_number(*next, "--count", parsed.next.count, {1, kMaxCronTimes})
      ->description("Number of dates to print");
  add_parsed<WallTime>(*next, "--after", parse_due_at,
                       [&parsed](WallTime after) { parsed.next.after = after; })
      ->type_name("TIME")
      ->description(
          "Print only dates after this time, default now: RFC 3339, a date, or milliseconds since "
          "1970; a date is its start in UTC, also with --zone");
  next->footer(
      "Examples:\n"
      "  detent cron next '0 9 LW * *' --zone Asia/Shanghai --count 12\n"
      "  detent cron next '*/15 * * * *' --after 2030-01-01T00:00:00Z --json");
  add_cron_command(*cron, parsed, "explain", "Explain a cron expression in plain English")
      ->footer("Example:\n  detent cron explain '0 9 * * MON-FRI' --zone Europe/Berlin");
  cron->footer(
      "These commands need no server.\n"
      "Examples:\n"
      "  detent cron next '0 9 LW * *' --zone Asia/Shanghai\n"
      "  detent cron explain '*/15 9-17 * * MON-FRI'\n"
      "`detent cron next --help` shows the options.");
}

CronCall chosen_cron(const CLI::App& app, CronArguments& parsed, OutputFormat format) {
  CronCall call = std::move(parsed.call);
  if (format == OutputFormat::json) call.format = format;
  if (app.get_subcommand("cron")->got_subcommand("next")) call.next = parsed.next;
  return call;
}

}  // namespace detent::cli
