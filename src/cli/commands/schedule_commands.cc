#include "cli/commands/schedule_commands.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "base/wall_time.h"
#include "cli/output/progress.h"
#include "protocol/json/schedule_codec.h"

namespace detent::cli {

namespace {

std::string text_of(const std::optional<WallTime>& time) {
  return time ? format_rfc3339(*time) : "-";
}

/// The rule in words, or the error if the server cannot read it.
std::string words_of(const client::Schedule& schedule) {
  return printable(schedule.broken.empty() ? schedule.words : schedule.broken);
}

/// One row per schedule, cut at `columns`; 0 does not cut.
void show_schedules(std::ostream& out, const std::vector<client::Schedule>& schedules,
                    std::size_t columns) {
  std::vector<Row> rows{{"NAME", "STATE", "NEXT", "LAST", "MADE", "RULE"}};
  for (const client::Schedule& schedule : schedules) {
    rows.push_back({printable(schedule.name), schedule.state, text_of(schedule.next_at),
                    text_of(schedule.last_at), std::to_string(schedule.made), words_of(schedule)});
  }
  constexpr std::size_t kName = 0;
  constexpr std::size_t kRule = 5;
  show_table(out, std::move(rows), columns, {kRule, kName});
}

void add_rule_rows(std::vector<Row>& rows, const client::NewSchedule& schedule) {
  if (const auto* cron = std::get_if<client::CronRule>(&schedule.rule)) {
    rows.push_back({"cron", printable(cron->expression)});
  } else if (const auto* interval = std::get_if<client::IntervalRule>(&schedule.rule)) {
    rows.push_back({"every", show_duration(interval->every)});
    if (interval->anchor) rows.push_back({"anchor", format_rfc3339(*interval->anchor)});
  } else if (const auto* calendar = std::get_if<client::CalendarRule>(&schedule.rule)) {
    rows.push_back({"calendar", std::to_string(calendar->every) + " " +
                                    std::string(to_string(calendar->unit)) +
                                    (calendar->every == 1 ? "" : "s")});
    if (calendar->anchor) rows.push_back({"anchor", format_rfc3339(*calendar->anchor)});
    rows.push_back({"month end", std::string(to_string(calendar->month_end))});
  }
  rows.push_back({"zone", printable(schedule.time_zone)});
  if (schedule.gap) rows.push_back({"gap", std::string(to_string(*schedule.gap))});
  if (schedule.repeat) rows.push_back({"repeat", std::string(to_string(*schedule.repeat))});
}

void add_bound_rows(std::vector<Row>& rows, const client::NewSchedule& schedule) {
  if (schedule.start) rows.push_back({"start", format_rfc3339(*schedule.start)});
  if (schedule.end) rows.push_back({"end", format_rfc3339(*schedule.end)});
  if (schedule.count) rows.push_back({"count", std::to_string(*schedule.count)});
  rows.push_back({"jitter", show_duration(schedule.jitter)});
  std::string misfire(to_string(schedule.misfire));
  if (schedule.misfire == client::NewSchedule::Misfire::all) {
    misfire += ", at most " + std::to_string(schedule.misfire_limit);
  }
  rows.push_back({"misfire", misfire + ", after " + show_duration(schedule.misfire_grace)});
  rows.push_back({"overlap", std::string(to_string(schedule.overlap))});
}

void show_schedule(std::ostream& out, const client::Schedule& schedule) {
  std::vector<Row> rows{{"schedule", printable(schedule.name)},
                        {"state", schedule.state},
                        {"rule", words_of(schedule)},
                        {"next", text_of(schedule.next_at)},
                        {"last", text_of(schedule.last_at)},
                        {"made", std::to_string(schedule.made)},
                        {"overlapped", std::to_string(schedule.overlapped)}};
  if (schedule.queued_at) rows.push_back({"queued", format_rfc3339(*schedule.queued_at)});
  if (schedule.last_task != 0) rows.push_back({"last task", std::to_string(schedule.last_task)});
  add_rule_rows(rows, schedule.definition);
  add_bound_rows(rows, schedule.definition);
  rows.push_back({"queue", printable(schedule.queue)});
  rows.push_back({"payload", printable(schedule.definition.payload)});
  show_table(out, rows);
}

void show_line(std::ostream& out, const client::Schedule& schedule) {
  out << printable(schedule.name) << "  " << schedule.state << "  next "
      << text_of(schedule.next_at) << "  " << words_of(schedule) << '\n';
}

/// N (from 1) if the message is "column N: …", else 0.
std::size_t column_of(std::string_view message) {
  constexpr std::string_view kBefore = "column ";
  if (!message.starts_with(kBefore)) return 0;
  message.remove_prefix(kBefore.size());
  std::size_t column = 0;
  const char* const end = message.data() + message.size();
  const auto [stop, error] = std::from_chars(message.data(), end, column);
  const bool is_whole = error == std::errc{} && stop != end && *stop == ':';
  return is_whole ? column : 0;
}

/// Occurrences per request of a back-fill. Progress is shown between two requests.
constexpr std::uint64_t kBackfillPart = 1'000;

std::string in_words(const client::BackfillResult& counts) {
  return "made " + counted(counts.made, "tasks") +
         ", there before: " + std::to_string(counts.there);
}

/// Runs one command of the variant. There is a call operator for each.
class ScheduleRunner : private ResultPrinter {
 public:
  using ResultPrinter::ResultPrinter;

  ExitCode operator()(const PutScheduleCommand& put) {
    client::NewSchedule schedule = put.schedule;
    using Kind = client::Payload::Kind;
    Result<client::Payload> payload =
        read_payload(put.payload, put.bytes ? Kind::bytes : Kind::json, streams_.in);
    if (!payload) return fail_with(payload.error());
    schedule.payload = *std::move(payload);
    const ClientResult<client::Schedule> made = client_.put_schedule(put.name, schedule);
    const ExitCode code = show(made, show_line);
    const auto* cron = std::get_if<client::CronRule>(&schedule.rule);
    if (!made && cron != nullptr) point_at(*cron, made.error());
    return code;
  }

  ExitCode operator()(const ListSchedulesCommand&) {
    std::vector<client::Schedule> schedules;
    for (std::string after; true;) {
      ClientResult<client::SchedulePage> page = client_.schedule_page(after);
      if (!page) return fail_with(to_error(page.error()));
      pass_on();
      std::ranges::move(page->schedules, std::back_inserter(schedules));
      if (page->cursor.empty()) break;
      if (page->cursor <= after) {
        return fail_with({ErrorCode::internal,
                          "unexpected answer: the server repeats a page of the list of schedules",
                          ""});
      }
      after = std::move(page->cursor);
    }
    if (format_ == OutputFormat::people) {
      show_schedules(streams_.out, schedules, streams_.terminal.columns);
    }
    return ExitCode::done;
  }

  ExitCode operator()(const GetScheduleCommand& get) {
    return show(client_.get_schedule(get.name), show_schedule);
  }

  ExitCode operator()(const NextOccurrencesCommand& next) {
    return show(client_.next_occurrences(next.name, next.count),
                [](std::ostream& out, const std::vector<WallTime>& times) {
                  for (const WallTime time : times) out << format_rfc3339(time) << '\n';
                });
  }

  ExitCode operator()(const ChangeScheduleCommand& change) {
    switch (change.verb) {
      case ChangeScheduleCommand::Verb::pause:
        return show(client_.pause_schedule(change.name), show_line);
      case ChangeScheduleCommand::Verb::resume:
        return show(client_.resume_schedule(change.name), show_line);
      case ChangeScheduleCommand::Verb::trigger:
        return show(client_.trigger_schedule(change.name), show_accepted);
      case ChangeScheduleCommand::Verb::remove:
        break;
    }
    return show(client_.remove_schedule(change.name),
                [&](std::ostream& out) { out << "removed " << printable(change.name) << '\n'; });
  }

  ExitCode operator()(const BackfillCommand& backfill) {
    client::BackfillResult all{.next = backfill.from};
    Progress progress(streams_.err, Progress::shown_on(streams_.terminal), "back-filled:");
    while (all.next) {
      const WallTime from = *all.next;
      const ClientResult<client::BackfillResult> part =
          client_.backfill(backfill.name, {from, backfill.to, kBackfillPart});
      if (!part) {
        progress.end();
        const ExitCode code = fail_with(to_error(part.error()));
        if (from != backfill.from) {
          streams_.err << in_words(all) << "; continue with --from " << format_rfc3339(from)
                       << '\n';
        }
        return code;
      }
      if (part->next && *part->next <= from) {
        return fail_with({ErrorCode::internal,
                          "unexpected answer: the back-fill of the server makes no progress", ""});
      }
      all.made += part->made;
      all.there += part->there;
      all.next = part->next;
      progress.at(all.made + all.there);
    }
    progress.end();
    const bool is_for_people = format_ == OutputFormat::people;
    streams_.out << (is_for_people ? in_words(all)
                                   : json::render_backfill_counts({all.made, all.there, all.next}))
                 << '\n';
    return ExitCode::done;
  }

 private:
  void point_at(const client::CronRule& cron, const ClientError& error) {
    const std::size_t column = column_of(error.message);
    // If a character has several bytes or is shown as \xNN, the caret would be at the wrong place.
    const bool is_plain =
        std::ranges::all_of(cron.expression, [](char c) { return c >= ' ' && c <= '~'; });
    if (error.field != "cron" || column == 0 || !is_plain) return;
    if (column > cron.expression.size() + 1) return;
    streams_.err << "  " << cron.expression << "\n  " << std::string(column - 1, ' ') << "^\n";
  }
};

}  // namespace

ExitCode run_schedule_command(const ScheduleCommand& command, OutputFormat format, Client& client,
                              const Streams& streams) {
  return std::visit(ScheduleRunner(format, client, streams), command);
}

}  // namespace detent::cli
