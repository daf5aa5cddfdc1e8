#include "server/program/check_data.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "cli/cli.h"
#include "cli/output/progress.h"
#include "protocol/json/json_writer.h"
#include "server/program/open_engine.h"
#include "store/store_check.h"

namespace detent::server {

namespace {

/// Closes the store when it returns, because an open store keeps writing new tables.
Result<StoreReport> report_on(const cli::CheckOptions& options, std::uint32_t shard,
                              const OnCutTail& on_cut_tail,
                              const std::function<void(std::uint64_t)>& at) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_data(options, shard, on_cut_tail));
  return check_store(*store, at);
}

Result<StoreReport> report_on(const cli::CheckOptions& options) {
  ASSIGN_OR_RETURN(const std::uint32_t shards, shards_in(options));
  std::vector<std::string> notes;
  const auto note_tail = [&notes](const CutTail& tail) {
    notes.push_back("log " + tail.file + " ended in an incomplete write at byte " +
                    std::to_string(tail.ended_at) + ", and " +
                    std::to_string(tail.discarded_bytes) +
                    " bytes after it were discarded; only writes that were not synced can be in "
                    "them");
  };
  using Shown = cli::Progress::Shown;
  const bool is_watched = cli::terminal_of_process().is_error_terminal;
  cli::Progress progress(std::cerr, is_watched ? Shown::line_that_changes : Shown::lines,
                         "records read:");
  std::uint64_t read_before = 0;
  std::uint64_t read = 0;
  const auto at = [&](std::uint64_t read_here) { progress.at(read = read_before + read_here); };
  ASSIGN_OR_RETURN(StoreReport report, report_on(options, 0, note_tail, at));
  if (shards > 1) {
    const StoreReport first = std::exchange(report, StoreReport{.shards = shards});
    add_shard(report, first, 0);
  }
  for (std::uint32_t shard = 1; shard < shards && !report.ended_by; ++shard) {
    read_before = read;
    const Result<StoreReport> of_shard = report_on(options, shard, note_tail, at);
    add_shard(report, of_shard ? *of_shard : StoreReport{.ended_by = of_shard.error()}, shard);
  }
  report.notes = std::move(notes);
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
  json.name("shards").number(report.shards);
  json.name("queues").number(report.queues);
  json.name("schedules").number(report.schedules);
  json.name("due_bins").number(report.due_bins);
  json.name("quarantined").number(report.quarantined);
  json.name("finding_count").number(report.finding_count);
  json.name("findings").begin_array();
  for (const std::string& finding : report.findings) json.string(finding);
  json.end_array();
  json.name("notes").begin_array();
  for (const std::string& note : report.notes) json.string(note);
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
