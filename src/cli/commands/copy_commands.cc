#include "cli/commands/copy_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/open_file.h"
#include "cli/output/progress.h"
#include "client/dump_copy.h"

namespace detent::cli {

namespace {

constexpr std::string_view kStandardStream = "-";

Error file_error(const char* verb, const std::string& file) {
  return {ErrorCode::unavailable,
          std::string(verb) + " " + file + ": " + std::generic_category().message(errno), ""};
}

std::string and_schedules(std::uint64_t count) {
  return count == 0 ? "" : " and " + counted(count, "schedules");
}

/// Syncs the file to disk, so that a finished dump survives a power failure.
Result<void> sync_file(const std::string& file) {
  const OpenFile opened(file, O_RDONLY);
  if (!opened.is_open()) return file_error("open", file);
  return opened.sync() ? ok() : Result<void>(file_error("sync", file));
}

Result<DumpCounts> write_part(Client& client, const std::string& part, Progress& progress) {
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return file_error("open", part);
  ASSIGN_OR_RETURN(
      const DumpCounts counts,
      write_dump(client, out, [&progress](std::uint64_t tasks) { progress.at(tasks); }));
  out.close();
  if (!out) return file_error("write", part);
  TRY(sync_file(part));
  return counts;
}

Result<DumpCounts> dump_to_file(Client& client, const std::string& file, Progress& progress) {
  const std::string part = file + ".part";
  Result<DumpCounts> counts = write_part(client, part, progress);
  std::error_code error;
  if (counts) std::filesystem::rename(part, file, error);
  if (counts && !error) return counts;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  if (!counts) return counts;
  return Error{ErrorCode::unavailable, "rename " + part + ": " + error.message(), ""};
}

/// Prints the errors of a dump after all its lines were read. Returns whether there are any.
bool complain_about(const DumpRestore::Report& report, bool is_partial, const Streams& streams) {
  bool is_sound = report.refused == 0;
  const auto complain = [&](const std::string& what) {
    is_sound = false;
    show_error(streams.err, {ErrorCode::data_loss, what, ""});
  };
  if (report.damaged > 0) {
    complain("the dump does not contain " + counted(report.damaged, "tasks") +
             ", because of damaged records on the server that made it");
  }
  const std::string uncounted =
      "the dump is damaged: an end line does not count all kinds of lines, so missing lines cannot "
      "be detected";
  if (is_partial) {
    if (report.is_uncounted) streams.err << uncounted << '\n';
    return !is_sound;
  }
  if (report.is_uncounted) {
    complain(uncounted);
  } else if (!report.has_end) {
    complain(report.is_dump ? "the dump is truncated: it has no end line"
                            : "the input is not a dump: no line of it is a line of a dump");
  } else if (!report.is_count_right) {
    complain("the dump is incomplete: the counts of an end line differ from its lines");
  }
  return !is_sound;
}

ExitCode restore_from(std::istream& in, const RestoreCommand& command, DumpRestore& restore,
                      Progress& progress, const Streams& streams) {
  const Result<void> done = restore.run(in);
  progress.end();
  const DumpRestore::Report& report = restore.report();
  streams.err << "restored " << counted(report.restored, "tasks")
              << ", there before: " << report.there << "; made " << counted(report.queues, "queues")
              << '\n';
  if (report.schedules + report.schedules_there > 0) {
    streams.err << "restored " << counted(report.schedules, "schedules")
                << ", there before: " << report.schedules_there << '\n';
  }
  if (done) {
    return complain_about(report, command.partial, streams) ? ExitCode::failed : ExitCode::done;
  }
  streams.err << "stopped after line " << report.through_line
              << "; you can repeat the command, because it does not change restored tasks\n";
  return fail_with(streams, done.error());
}

}  // namespace

ExitCode dump(const DumpCommand& command, Client& client, const Streams& streams) {
  Progress progress(streams.err, Progress::shown_on(streams.terminal), "dumped tasks:");
  const Result<DumpCounts> counts =
      command.file == kStandardStream
          ? write_dump(client, streams.out,
                       [&progress](std::uint64_t tasks) { progress.at(tasks); })
          : dump_to_file(client, command.file, progress);
  progress.end();
  if (!counts) return fail_with(streams, counts.error());
  streams.err << "dumped " << counted(counts->lines.tasks, "tasks")
              << and_schedules(counts->lines.schedules) << '\n';
  if (counts->external > 0) {
    streams.err << "not in the dump: " << counted(counts->external, "tasks")
                << " that the external scheduler keeps\n";
  }
  if (counts->lines.damaged == 0) return ExitCode::done;
  return fail_with(streams,
                   {ErrorCode::data_loss,
                    "the dump does not contain " + counted(counts->lines.damaged, "tasks") +
                        ", because of damaged records on the server",
                    ""});
}

ExitCode restore(const RestoreCommand& command, OutputFormat format, Client& client,
                 const Streams& streams) {
  Progress progress(streams.err, Progress::shown_on(streams.terminal), "restored tasks:");
  DumpRestore restore(
      client, {.on_refused =
                   [&](std::uint64_t line, const Error& error) {
                     progress.end();
                     show_error(streams.err, with_context("line " + std::to_string(line), error));
                   },
               .on_part =
                   [&] {
                     if (format == OutputFormat::json) {
                       streams.out << ClientInternals::of(client).last_answer() << '\n';
                     }
                     progress.at(restore.report().restored + restore.report().there);
                   }});
  if (command.file == kStandardStream) {
    return restore_from(streams.in, command, restore, progress, streams);
  }
  std::ifstream in(command.file, std::ios::binary);
  if (!in) return fail_with(streams, file_error("open", command.file));
  if (command.partial) return restore_from(in, command, restore, progress, streams);
  const Result<bool> is_whole = has_dump_end(in);
  if (!is_whole) return fail_with(streams, with_context(command.file, is_whole.error()));
  if (*is_whole) return restore_from(in, command, restore, progress, streams);
  std::array<char, 64> beginning{};
  in.read(beginning.data(), beginning.size());
  const Result<void> may_be_cut_off =
      expect_dump({beginning.data(), std::size_t(in.gcount())}, command.file);
  if (!may_be_cut_off) return fail_with(streams, may_be_cut_off.error());
  return fail_with(streams,
                   {ErrorCode::data_loss,
                    command.file + " is truncated: it has no end line. Nothing was restored; "
                                   "--partial restores the lines that are there",
                    ""});
}

}  // namespace detent::cli
