#include "cli/schedule_commands.h"

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
#include "cli/display.h"
#include "cli/progress.h"
#include "protocol/json/schedule_renderer.h"

namespace detent::cli {

namespace {

std::string text_of(const std::optional<WallTime>& time) {
  return time ? format_rfc3339(*time) : "-";
}

/// The rule in words, or the error if the server cannot read it.
std::string words_of(const ScheduleView& view) {
  return printable(view.broken.empty() ? view.words : view.broken);
}

/// One row per schedule, cut at `columns`; 0 does not cut.
void show_schedules(std::ostream& out, const std::vector<ScheduleView>& views,
                    std::size_t columns) {
  std::vector<Row> rows{{"NAME", "STATE", "NEXT", "LAST", "MADE", "RULE"}};
  for (const ScheduleView& view : views) {
    const auto& [schedule, progress] = view.record;
    rows.push_back({printable(schedule.name), std::string(state_of(view)), text_of(view.next_at),
                    text_of(progress.last_at), std::to_string(progress.made), words_of(view)});
  }
  constexpr std::size_t kName = 0;
  constexpr std::size_t kRule = 5;
  show_table(out, std::move(rows), columns, {kRule, kName});
}

void add_rule_rows(std::vector<Row>& rows, const RecurringSchedule& schedule) {
  if (const auto* cron = std::get_if<CronRule>(&schedule.rule)) {
    rows.push_back({"cron", printable(cron->expression)});
  } else if (const auto* interval = std::get_if<IntervalRule>(&schedule.rule)) {
    rows.push_back({"every", show_duration(interval->period)});
    if (interval->anchor) rows.push_back({"anchor", format_rfc3339(*interval->anchor)});
  } else if (const auto* calendar = std::get_if<CalendarRule>(&schedule.rule)) {
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

void add_bound_rows(std::vector<Row>& rows, const RecurringSchedule& schedule) {
  if (schedule.start) rows.push_back({"start", format_rfc3339(*schedule.start)});
  if (schedule.end) rows.push_back({"end", format_rfc3339(*schedule.end)});
  if (schedule.count) rows.push_back({"count", std::to_string(*schedule.count)});
  rows.push_back({"jitter", show_duration(schedule.jitter)});
  std::string misfire(to_string(schedule.misfire));
  if (schedule.misfire == Misfire::all) {
    misfire += ", at most " + std::to_string(schedule.misfire_limit);
  }
  rows.push_back({"misfire", misfire + ", after " + show_duration(schedule.misfire_grace)});
  rows.push_back({"overlap", std::string(to_string(schedule.overlap))});
}

void show_schedule(std::ostream& out, const ScheduleView& view) {
  const auto& [schedule, progress] = view.record;
  std::vector<Row> rows{{"schedule", printable(schedule.name)},
                        {"state", std::string(state_of(view))},
                        {"rule", words_of(view)},
                        {"next", text_of(view.next_at)},
                        {"last", text_of(progress.last_at)},
                        {"made", std::to_string(progress.made)},
                        {"overlapped", std::to_string(progress.overlapped)}};
  if (progress.queued_at) rows.push_back({"queued", format_rfc3339(*progress.queued_at)});
  if (progress.last_task.value != 0) rows.push_back({"last task", to_string(progress.last_task)});
  add_rule_rows(rows, schedule);
  add_bound_rows(rows, schedule);
  rows.push_back({"queue", printable(schedule.queue)});
  rows.push_back({"payload", printable(schedule.payload)});
  show_table(out, rows);
}

void show_line(std::ostream& out, const ScheduleView& view) {
  out << printable(view.record.schedule.name) << "  " << state_of(view) << "  next "
      << text_of(view.next_at) << "  " << words_of(view) << '\n';
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

std::string in_words(const json::BackfillCounts& counts) {
  return "made " + counted(counts.made, "tasks") +
         ", there before: " + std::to_string(counts.there);
}

/// Runs one command of the variant. There is a call operator for each.
class ScheduleRunner {
 public:
  ScheduleRunner(OutputFormat format, ApiClient& client, const Streams& streams)
      : format_(format), client_(client), streams_(streams) {}

  ExitCode operator()(const PutScheduleCommand& put) {
    RecurringSchedule schedule = put.schedule;
    schedule.payload = read_payload(
        put.payload, put.bytes ? Payload::Kind::bytes : Payload::Kind::json, streams_.in);
    const Result<ScheduleView> view = client_.put_schedule(schedule);
    if (!view) {
      const ExitCode code = fail_with(view.error());
      if (const auto* cron = std::get_if<CronRule>(&schedule.rule)) point_at(*cron, view.error());
      return code;
    }
    return show(view, show_line);
  }

  ExitCode operator()(const ListSchedulesCommand&) {
    std::vector<ScheduleView> views;
    for (std::string after; true;) {
      Result<json::ScheduleList> page = client_.schedules(after);
      if (!page) return fail_with(page.error());
      pass_on();
      std::ranges::move(page->schedules, std::back_inserter(views));
      if (page->cursor.empty()) break;
      if (page->cursor <= after) {
        return fail_with({ErrorCode::internal,
                          "unexpected answer: the server repeats a page of the list of schedules",
                          ""});
      }
      after = std::move(page->cursor);
    }
    if (format_ == OutputFormat::people) {
      show_schedules(streams_.out, views, streams_.terminal.columns);
    }
    return ExitCode::done;
  }

  ExitCode operator()(const GetScheduleCommand& get) {
    return show(client_.find_schedule(get.name), show_schedule);
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
    const Result<void> removed = client_.remove_schedule(change.name);
    if (!removed) return fail_with(removed.error());
    if (!pass_on()) streams_.out << "removed " << printable(change.name) << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const BackfillCommand& backfill) {
    json::BackfillCounts all{.next = backfill.from};
    Progress progress(streams_.err, Progress::shown_on(streams_.terminal), "back-filled:");
    while (all.next) {
      const WallTime from = *all.next;
      const Result<json::BackfillCounts> part =
          client_.backfill(backfill.name, {from, backfill.to, kBackfillPart});
      if (!part) {
        progress.end();
        const ExitCode code = fail_with(part.error());
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
    streams_.out << (is_for_people ? in_words(all) : json::render_backfill_counts(all)) << '\n';
    return ExitCode::done;
  }

 private:
  /// With --json: prints the answer of the server and returns true. Else returns false, and the
  /// caller prints the result for people.
  bool pass_on() {
    if (format_ == OutputFormat::people) return false;
    streams_.out << client_.last_answer() << '\n';
    return true;
  }

  ExitCode fail_with(const Error& error) {
    show_error(streams_.err, error);
    return exit_code_of(error.code);
  }

  void point_at(const CronRule& cron, const Error& error) {
    const std::size_t column = column_of(error.message);
    // If a character has several bytes or is shown as \xNN, the caret would be at the wrong place.
    const bool is_plain = printable(cron.expression) == cron.expression;
    if (error.field != "cron" || column == 0 || !is_plain) return;
    if (column > cron.expression.size() + 1) return;
    streams_.err << "  " << cron.expression << "\n  " << std::string(column - 1, ' ') << "^\n";
  }

  template <class T, class Show>
  ExitCode show(const Result<T>& result, Show show_people) {
    if (!result) return fail_with(result.error());
    if (!pass_on()) show_people(streams_.out, *result);
    return ExitCode::done;
  }

  const OutputFormat format_;
  ApiClient& client_;
  const Streams& streams_;
};

}  // namespace

ExitCode run_schedule_command(const ScheduleCommand& command, OutputFormat format,
                              ApiClient& client, const Streams& streams) {
  return std::visit(ScheduleRunner(format, client, streams), command);
}

}  // namespace detent::cli
