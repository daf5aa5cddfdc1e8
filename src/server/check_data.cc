#include "server/check_data.h"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/progress.h"
#include "server/open_engine.h"
#include "store/store_check.h"

namespace detent::server {

namespace {

Result<StoreReport> report_on(const std::filesystem::path& data) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_data(data));
  using Shown = cli::Progress::Shown;
  const bool is_watched = cli::terminal_of_process().is_error_terminal;
  cli::Progress progress(std::cerr, is_watched ? Shown::line_that_changes : Shown::lines,
                         "records read:");
  return check_store(*store, [&progress](std::uint64_t read) { progress.at(read); });
}

}  // namespace

int check_data(const cli::CheckOptions& options) {
  const Result<StoreReport> report = report_on(options.data);
  if (report) {
    std::cout << to_string(*report);
    return report->is_sound() ? 0 : 1;
  }
  std::fprintf(stderr, "detent check: %s\n", report.error().message.c_str());
  return static_cast<int>(cli::exit_code_of(report.error().code));
}

}  // namespace detent::server
