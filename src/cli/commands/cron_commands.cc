#include "cli/commands/cron_commands.h"

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/wall_time.h"
#include "calendar/time_zone.h"
#include "cli/output/display.h"
#include "detent/cron.h"
#include "protocol/json/json_writer.h"

namespace detent::cli {

namespace {

using json::JsonWriter;

/// Prints "detent: … (column 3)", and the expression with a caret under this column.
ExitCode refuse(const std::string& expression, const CalendarError& error, const Streams& streams) {
  const bool is_in_expression = error.column > 0;
  show_error(streams.err, {ErrorCode::invalid_argument, error.message,
                           is_in_expression ? "column " + std::to_string(error.column) : "--zone"});
  if (is_in_expression) {
    const std::string before = printable(std::string_view(expression).substr(0, error.column - 1));
    streams.err << "  " << printable(std::string_view(expression)) << "\n  "
                << std::string(width_of(before), ' ') << "^\n";
  }
  return ExitCode::usage;
}

/// "+08:00". Old dates in a few zones also have seconds: "-00:44:30".
std::string offset_text(std::chrono::seconds offset) {
  const auto two_digits = [](std::int64_t value) {
    return (value < 10 ? ":0" : ":") + std::to_string(value);
  };
  const std::int64_t count = std::chrono::abs(offset).count();
  std::string text = two_digits(count / 3600) + two_digits(count / 60 % 60);
  text.front() = offset < std::chrono::seconds{0} ? '-' : '+';
  return count % 60 == 0 ? text : text + two_digits(count % 60);
}

/// The local time in `zone`: "Tue 2026-12-01T09:00:00+08:00".
std::string local_text(const TimeZone& zone, WallTime time) {
  constexpr std::array<std::string_view, 7> kDays = {"Sun ", "Mon ", "Tue ", "Wed ",
                                                     "Thu ", "Fri ", "Sat "};
  const auto offset = zone.span_at(std::chrono::floor<std::chrono::seconds>(time)).offset;
  const WallTime local = time + offset;
  std::string text = format_rfc3339(local);
  text.resize(text.size() - (text.ends_with(".000Z") ? 5 : 1));
  const std::chrono::weekday day{std::chrono::floor<std::chrono::days>(local)};
  return std::string(kDays.at(day.c_encoding())) + text + offset_text(offset);
}

void show_times(std::ostream& out, const Cron& cron, const std::vector<WallTime>& times) {
  const TimeZone zone = TimeZone::load(cron.zone()).value();  // Cron::parse() has loaded this zone
  for (const WallTime time : times) {
    out << local_text(zone, time) << "  " << format_rfc3339(time) << '\n';
  }
}

/// Begins an object with {"expression":…,"zone":…. The command adds its fields and ends it.
JsonWriter begin_json(std::string& out, const Cron& cron) {
  JsonWriter json(out);
  json.begin_object().name("expression").string(cron.expression());
  json.name("zone").string(cron.zone());
  return json;
}

ExitCode next(const CronNextCommand& command, const Cron& cron, OutputFormat format, WallTime now,
              const Streams& streams) {
  const WallTime after = command.after.value_or(now);
  const std::vector<WallTime> times = cron.next(command.count, after);
  if (format == OutputFormat::json) {
    std::string text;
    JsonWriter json = begin_json(text, cron);
    json.name("next").begin_array();
    for (const WallTime time : times) json.string(format_rfc3339(time));
    json.end_array().end_object();
    streams.out << text << '\n';
  } else {
    show_times(streams.out, cron, times);
  }
  if (!times.empty()) return ExitCode::done;
  show_error(streams.err, {ErrorCode::not_found,
                           "the expression has no date after " + format_rfc3339(after), ""});
  return ExitCode::not_found;
}

ExitCode explain(const Cron& cron, OutputFormat format, const Streams& streams) {
  if (format == OutputFormat::people) {
    streams.out << cron.explain() << '\n';
    return ExitCode::done;
  }
  std::string text;
  begin_json(text, cron).name("text").string(cron.explain()).end_object();
  streams.out << text << '\n';
  return ExitCode::done;
}

}  // namespace

ExitCode run_cron(const CronCall& call, WallTime now, const Streams& streams) {
  const auto cron = Cron::parse(call.expression, call.zone);
  if (!cron) return refuse(call.expression, cron.error(), streams);
  if (call.next) return next(*call.next, cron.value(), call.format, now, streams);
  return explain(cron.value(), call.format, streams);
}

}  // namespace detent::cli
