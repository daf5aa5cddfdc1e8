// The options of `detent backup` and `detent restore-backup`; docs/reference/cli.md describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/output/output_format.h"

namespace detent::cli {

struct BackupOptions {
  /// What the command does with the backup folder.
  enum class Act : std::uint8_t { add, list, check };
  std::filesystem::path folder;
  Act act = Act::add;
  std::filesystem::path data;              // of a stopped server; empty: ask the running server
  std::optional<std::uint32_t> keep;       // the newest backups stay
  std::optional<std::uint32_t> keep_days;  // backups of these days stay
  // The running server.
  std::string server;
  std::string token;
  std::string ca_file;
  OutputFormat format = OutputFormat::people;
};

struct RestoreBackupOptions {
  std::filesystem::path folder;
  std::filesystem::path data = "data";
  std::optional<std::uint32_t> number;  // empty: the newest backup
  OutputFormat format = OutputFormat::people;
};

}  // namespace detent::cli
