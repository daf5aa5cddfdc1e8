#include "server/check_data.h"

#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "cli/cli.h"
#include "cli/progress.h"
#include "protocol/json/json_writer.h"
#include "server/open_engine.h"
#include "store/store_check.h"

namespace detent::server {

namespace {

Result<StoreReport> report_on(const cli::CheckOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, open_data(options));
  using Shown = cli::Progress::Shown;
  const bool is_watched = cli::terminal_of_process().is_error_terminal;
  cli::Progress progress(std::cerr, is_watched ? Shown::line_that_changes : Shown::lines,
                         "records read:");
  StoreReport report = check_store(*store, [&progress](std::uint64_t read) { progress.at(read); });
  store.reset();  // it writes tables anew as long as it is open
  ASSIGN_OR_RETURN(const std::vector<std::string> files, damaged_files(options));
  report.finding_count += files.size();
  report.findings.insert(report.findings.end(), files.begin(), files.end());
  return report;
}

std::string as_json(const StoreReport& report) {
  constexpr std::array<const char*, 4> kLanes{"due", "ready", "dead", "ended"};
  std::string text;
  json::JsonWriter json(text);
  json.begin_object().name("records").begin_object();
  for (std::size_t i = 0; i < kLanes.size(); ++i) json.name(kLanes.at(i)).number(report.records[i]);
  json.end_object();
  json.name("queues").number(report.queues);
  json.name("schedules").number(report.schedules);
  json.name("due_bins").number(report.due_bins);
  json.name("quarantined").number(report.quarantined);
  json.name("finding_count").number(report.finding_count);
  json.name("findings").begin_array();
  for (const std::string& finding : report.findings) json.string(finding);
  json.end_array();
  if (report.ended_by) json.name("error").string(report.ended_by->message);
  json.end_object();
  return text + "\n";
}

}  // namespace

int check_data(const cli::CheckOptions& options) {
  const Result<StoreReport> report = report_on(options);
  if (report) {
    std::cout << (options.format == cli::OutputFormat::json ? as_json(*report)
                                                            : to_string(*report));
    return report->is_sound() ? 0 : 1;
  }
  std::fprintf(stderr, "detent check: %s\n", report.error().message.c_str());
  return static_cast<int>(cli::exit_code_of(report.error().code));
}

}  // namespace detent::server
