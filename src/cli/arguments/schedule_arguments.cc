#include "cli/arguments/schedule_arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <variant>

#include "client/client_values.h"

namespace detent::cli {

template <>
inline constexpr std::size_t kCount<client::NewSchedule::Gap> = 2;
template <>
inline constexpr std::size_t kCount<client::NewSchedule::Repeat> = 3;
template <>
inline constexpr std::size_t kCount<client::NewSchedule::Misfire> = 3;
template <>
inline constexpr std::size_t kCount<client::NewSchedule::Overlap> = 3;
template <>
inline constexpr std::size_t kCount<client::CalendarRule::MonthEnd> = 2;

namespace {

using client::CalendarRule;
using client::CronRule;
using client::IntervalRule;
using client::NewSchedule;
using std::chrono::milliseconds;

constexpr std::size_t kMaxNext = 1'000;

/// "3 months", "month", "1 year".
Result<CalendarRule> parse_calendar(const std::string& text) {
  const Error wrong{ErrorCode::invalid_argument,
                    "must be a number of days, weeks, months or years, such as \"3 months\"", ""};
  CalendarRule rule;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at != end && *at >= '0' && *at <= '9') {
    const auto [stop, error] = std::from_chars(at, end, rule.every);
    if (error != std::errc{}) return wrong;
    at = std::find_if(stop, end, [](char c) { return c != ' '; });
  }
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  for (const auto known : {CalendarRule::Unit::day, CalendarRule::Unit::week,
                           CalendarRule::Unit::month, CalendarRule::Unit::year}) {
    const std::string name(to_string(known));
    if (unit != name && unit != name + "s") continue;
    rule.unit = known;
    return rule;
  }
  return wrong;
}

void add_rule(CLI::App& command, ScheduleArguments& parsed) {
  NewSchedule& schedule = parsed.put.schedule;
  CLI::Option_group* rule =
      command.add_option_group("rule", "The rule of the schedule; give one of these options");
  rule->require_option(1);
  CLI::Option* cron =
      rule->add_option_function<std::string>(
              "--cron", [&](const std::string& text) { schedule.rule = CronRule{text}; },
              "Cron expression of 5 or 6 fields, such as \"0 9 LW * *\"")
          ->type_name("EXPR");
  add_parsed<milliseconds>(
      *rule, "--every", parse_positive_duration,
      [&](milliseconds period) { schedule.rule = IntervalRule{.every = period}; })
      ->description("Interval in real time, such as 90s or 4h")
      ->type_name("DURATION");
  CLI::Option* calendar = add_parsed<CalendarRule>(
      *rule, "--calendar", parse_calendar, [&](const CalendarRule& read) { schedule.rule = read; });
  calendar->description("Interval in the calendar: day, \"2 weeks\", \"3 months\", year")
      ->type_name("SPAN");

  add_parsed<WallTime>(command, "--anchor", parse_due_at, [&](WallTime at) { parsed.anchor = at; })
      ->description(
          "Time from which --every and --calendar count; default: --start, or else now; a date is "
          "its start in UTC, also with --zone")
      ->type_name("TIME")
      ->excludes(cron);
  add_word<CalendarRule::MonthEnd>(
      command, "--month-end",
      [&](CalendarRule::MonthEnd month_end) { parsed.month_end = month_end; })
      ->description("Policy of --calendar for months without this day; clamp uses their last day")
      ->needs(calendar);
}

void add_zone(CLI::App& command, NewSchedule& schedule) {
  command.add_option("--zone", schedule.time_zone, "Time zone of the rule, such as Asia/Shanghai")
      ->type_name("ZONE")
      ->capture_default_str();
  add_word<NewSchedule::Gap>(command, "--gap", [&](NewSchedule::Gap gap) {
    schedule.gap = gap;
  })->description("Policy for local times skipped by daylight saving");
  add_word<NewSchedule::Repeat>(command, "--repeat", [&](NewSchedule::Repeat repeat) {
    schedule.repeat = repeat;
  })->description("Policy for local times that daylight saving repeats");
}

void add_tasks(CLI::App& command, PutScheduleCommand& put) {
  NewSchedule& schedule = put.schedule;
  command.add_option("--queue", schedule.queue, "Queue of the created tasks")
      ->type_name("QUEUE")
      ->required();
  command
      .add_option("--payload", put.payload,
                  "Payload of the tasks: JSON, or other text as bytes; text that begins like JSON "
                  "must be JSON, "
                  "unless --bytes is given; - reads standard input")
      ->type_name("PAYLOAD");
  command.add_flag("--bytes", put.bytes,
                   "Treat the payload as bytes, even if it is or begins like JSON");
  add_priority(command, schedule.priority);
  add_number(command, "--max-attempts", schedule.max_attempts, {1, kMaxAttempts})
      ->description("Number of attempts before a task is dead");
  add_duration(command, "--visibility-timeout", schedule.visibility_timeout)
      ->description("How long a lease of a task lasts");
}

void add_bounds(CLI::App& command, NewSchedule& schedule) {
  add_parsed<WallTime>(command, "--start", parse_due_at, [&](WallTime at) { schedule.start = at; })
      ->description(
          "Create no tasks before this time: RFC 3339, a date, or milliseconds since 1970; a date "
          "is its start in UTC, also with --zone")
      ->type_name("TIME");
  add_parsed<WallTime>(command, "--end", parse_due_at, [&](WallTime at) { schedule.end = at; })
      ->description(
          "Create no tasks at this time or later; a date is its start in UTC, also with --zone")
      ->type_name("TIME");
  add_number(command, "--count", schedule.count, {.least = 1})
      ->description("End the schedule after this number of tasks");
  add_duration(command, "--jitter", schedule.jitter)
      ->description("Delay the tasks by up to this time; each schedule has its own fixed delay")
      ->default_str("0s");
  add_word<NewSchedule::Misfire>(command, "--misfire",
                                 [&](NewSchedule::Misfire misfire) { schedule.misfire = misfire; })
      ->description("Policy for missed occurrences; once creates one task for the last of them")
      ->default_str("once");
  add_duration(command, "--misfire-grace", schedule.misfire_grace)
      ->description("An occurrence counts as missed if it is later than this")
      ->default_str("1m");
  add_number(command, "--misfire-limit", schedule.misfire_limit, {1, kMaxMisfires})
      ->description("With --misfire all: create tasks for the last N missed occurrences");
  add_word<NewSchedule::Overlap>(command, "--overlap",
                                 [&](NewSchedule::Overlap overlap) { schedule.overlap = overlap; })
      ->description("Policy for an occurrence before the previous task has ended")
      ->default_str("allow");
}

/// Completes the command after all options were read: --anchor and --month-end belong to the rule.
PutScheduleCommand whole(const ScheduleArguments& parsed) {
  PutScheduleCommand put = parsed.put;
  if (auto* interval = std::get_if<IntervalRule>(&put.schedule.rule)) {
    interval->anchor = parsed.anchor;
  } else if (auto* calendar = std::get_if<CalendarRule>(&put.schedule.rule)) {
    calendar->anchor = parsed.anchor;
    calendar->month_end = parsed.month_end;
  }
  return put;
}

void add_put(CLI::App& app, ClientCall& call, ScheduleArguments& parsed) {
  CLI::App* command = add_client_command(app, call, "put", "Create or replace a schedule");
  command->add_option("NAME", parsed.put.name, "Name of the schedule")->required();
  add_rule(*command, parsed);
  add_zone(*command, parsed.put.schedule);
  add_tasks(*command, parsed.put);
  add_bounds(*command, parsed.put.schedule);
  command->callback([&parsed] { parsed.chosen = whole(parsed); });
  command->footer(
      "If the schedule exists, it keeps its progress.\n"
      "Examples:\n"
      "  detent schedule put report --cron '0 9 LW * *' --zone Asia/Shanghai --queue reports\n"
      "  detent schedule put beat --every 90s --queue beats --payload '{\"n\":1}' --jitter 30s\n"
      "  detent schedule put invoices --calendar '3 months' --anchor 2026-01-31T09:00:00Z "
      "--queue invoices");
}

void add_readers(CLI::App& app, ClientCall& call, ScheduleArguments& parsed) {
  CLI::App* list = add_client_command(app, call, "list", "Show all schedules");
  list->callback([&parsed] { parsed.chosen = ListSchedulesCommand{}; });
  list->footer("Example:\n  detent schedule list");
  CLI::App* get = add_client_command(app, call, "get", "Show a schedule");
  get->add_option("NAME", parsed.get.name, "Name of the schedule")->required();
  get->callback([&parsed] { parsed.chosen = parsed.get; });
  get->footer("Example:\n  detent schedule get report");
  CLI::App* next = add_client_command(app, call, "next", "Show the next occurrences of a schedule");
  next->add_option("NAME", parsed.next.name, "Name of the schedule")->required();
  add_number(*next, "--count", parsed.next.count, {1, kMaxNext})
      ->description("Number of occurrences to show");
  next->callback([&parsed] { parsed.chosen = parsed.next; });
  next->footer("Example:\n  detent schedule next report --count 12");
}

void add_changes(CLI::App& app, ClientCall& call, ScheduleArguments& parsed) {
  using Verb = ChangeScheduleCommand::Verb;
  const struct {
    Verb verb;
    const char* name;
    const char* what;
  } kVerbs[] = {{Verb::pause, "pause", "Stop creating tasks"},
                {Verb::resume, "resume", "Create tasks again"},
                {Verb::trigger, "trigger", "Create a task now"},
                {Verb::remove, "remove", "Remove a schedule, but not its tasks"}};
  for (const auto& each : kVerbs) {
    CLI::App* command = add_client_command(app, call, each.name, each.what);
    command->add_option("NAME", parsed.change.name, "Name of the schedule")->required();
    command->callback([&parsed, verb = each.verb] {
      parsed.change.verb = verb;
      parsed.chosen = parsed.change;
    });
    command->footer(std::string("Example:\n  detent schedule ") + each.name + " report");
  }
}

void add_backfill(CLI::App& app, ClientCall& call, ScheduleArguments& parsed) {
  CLI::App* command =
      add_client_command(app, call, "backfill", "Create the tasks of past occurrences");
  command->add_option("NAME", parsed.backfill.name, "Name of the schedule")->required();
  add_parsed<WallTime>(*command, "--from", parse_due_at,
                       [&parsed](WallTime at) { parsed.backfill.from = at; })
      ->description(
          "First time of the occurrences: RFC 3339, a date, or milliseconds since 1970; a date is "
          "its start in UTC")
      ->type_name("TIME")
      ->required();
  add_parsed<WallTime>(*command, "--to", parse_due_at,
                       [&parsed](WallTime at) { parsed.backfill.to = at; })
      ->description("Time before which the occurrences must be; a date is its start in UTC")
      ->type_name("TIME")
      ->required();
  command->callback([&parsed] { parsed.chosen = parsed.backfill; });
  command->footer(
      "An occurrence that has a task gets no second task.\n"
      "Example:\n"
      "  detent schedule backfill report --from 2026-01-01T00:00:00Z --to 2026-07-01T00:00:00Z");
}

}  // namespace

void add_schedule(CLI::App& app, ClientCall& call, ScheduleArguments& parsed) {
  CLI::App* schedule =
      app.add_subcommand("schedule", "Manage recurring schedules, which create tasks");
  schedule->require_subcommand(1);
  add_put(*schedule, call, parsed);
  add_readers(*schedule, call, parsed);
  add_changes(*schedule, call, parsed);
  add_backfill(*schedule, call, parsed);
  schedule->footer("`detent schedule COMMAND --help` shows the options of a command.");
}

}  // namespace detent::cli
