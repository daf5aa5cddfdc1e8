#include "server/program/backup_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/wall_time.h"
#include "cli/commands/commands.h"
#include "cli/output/text_table.h"
#include "client/client_impl.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "protocol/json/backup_codec.h"
#include "protocol/json/json_writer.h"
#include "server/backup/backups.h"
#include "server/operate/version.h"
#include "server/program/open_engine.h"
#include "store/checkpoints.h"

namespace detent::server {

namespace {

namespace fs = std::filesystem;

WallTime now() { return std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now()); }

/// Backups have payloads and the key of webhooks, so all files are for their owner only.
void write_for_owner_only() { ::umask(0077); }

int fail(std::ostream& err, const Error& error) {
  cli::show_error(err, error);
  return static_cast<int>(cli::exit_code_of(error.code));
}

/// "1.5 MB"
std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{" kB", " MB", " GB", " TB", " PB"};
  if (bytes < 1'000) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t tenths = bytes / 100;
  for (; tenths >= 10'000 && unit + 1 < kUnits.size(); tenths /= 1'000) ++unit;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + kUnits.at(unit);
}

void write_backup(json::JsonWriter& json, const StoredBackup& backup) {
  json.name("number").number(backup.number);
  json.name("made_at").string_or_null(
      backup.made_at == WallTime{} ? "" : format_rfc3339(backup.made_at));
  json.name("bytes").number(backup.bytes);
  json.name("files").number(backup.files);
  json.name("data").string_or_null(backup.folder);
  json.name("version").string_or_null(backup.program);
  json.name("damage").string_or_null(backup.damage);
}

BackupRequest request_of(const cli::BackupOptions& options, const json::BackupBegun& begun) {
  BackupRequest request{.folder = fs::absolute(options.folder).lexically_normal().string(),
                        .checkpoint = begun.folder,
                        .data = begun.data,
                        .program = kVersion,
                        .made_at = begun.made_at,
                        .now = now()};
  request.retention.keep = options.keep;
  if (options.keep_days) request.retention.keep_days = std::chrono::days{*options.keep_days};
  return request;
}

/// Returns true if the folder is the other one, or in it.
bool is_inside(const fs::path& inner, const fs::path& outer) {
  std::error_code ignored;
  const fs::path a = fs::weakly_canonical(fs::absolute(inner), ignored);
  const fs::path b = fs::weakly_canonical(fs::absolute(outer), ignored);
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).second == b.end();
}

/// Copies the checkpoint while it is locked.
Result<NewBackup> copy(const cli::BackupOptions& options, const json::BackupBegun& begun) {
  if (is_inside(options.folder, begun.data)) {
    return Error{ErrorCode::invalid_argument,
                 "backup folder '" + options.folder.string() + "' is in the data folder '" +
                     begun.data + "': name a folder outside, best on another disk",
                 "DIR"};
  }
  if (is_inside(begun.data, options.folder)) {
    return Error{ErrorCode::invalid_argument,
                 "data folder '" + begun.data + "' is in the backup folder '" +
                     options.folder.string() + "': name another folder for the backups",
                 "DIR"};
  }
  Result<CheckpointLock> lock = CheckpointLock::of(begun.folder);
  if (!lock) {
    return Error{
        lock.error().code == ErrorCode::not_found ? ErrorCode::unavailable : lock.error().code,
        lock.error().message +
            "; run `detent backup` on the machine of the server, as root or as the user "
            "of the server",
        ""};
  }
  return make_backup(request_of(options, begun));
}

/// The server makes the checkpoint and removes it afterwards.
Result<NewBackup> back_up_running(const cli::BackupOptions& options, std::ostream& err) {
  ASSIGN_OR_RETURN(Client client,
                   make_client_without_repeats(
                       options.server, {.token = options.token, .ca_file = options.ca_file}));
  ClientInternals::Impl& calls = ClientInternals::of(client);
  ServerCall begin = post_call("/v1/backup");
  begin.repeat = ServerCall::Repeat::never;
  begin.patience = ServerCall::Patience::patient;
  const auto begun = calls.call(begin, json::parse_backup_begun);
  if (!begun) return to_error(begun.error());
  Result<NewBackup> made = copy(options, *begun);
  json::BackupEnd end{.made_at = begun->made_at};
  if (made) {
    end.bytes = made->backup.bytes;
    end.copied_bytes = made->copied_bytes;
  }
  const auto ended = calls.call(post_call("/v1/backup/end", json::render_backup_end(end)));
  if (!ended) {
    err << "detent backup: the server could not end the backup: " << to_error(ended.error()).message
        << "; it removes '" << begun->folder << "' when the next backup begins or when it starts\n";
  }
  return made;
}

/// Runs `body`, which returns a Result. root then acts as the owner of the data folder. So new
/// files in the folder belong to the server, also after a kill, and a link in it leads to nothing
/// that the owner may not use. All threads of the process change their user.
template <class Body>
std::invoke_result_t<Body> as_owner(const std::string& data, Body body) {
  struct stat status {};
  if (::geteuid() != 0 || ::stat(data.c_str(), &status) != 0 || status.st_uid == 0) return body();
  const gid_t group = ::getegid();
  // The group first, because only root can change it.
  if (::setegid(status.st_gid) != 0 || ::seteuid(status.st_uid) != 0) {
    const std::string reason = std::generic_category().message(errno);
    const std::string uid = std::to_string(status.st_uid);
    DETENT_CHECK(::setegid(group) == 0);
    return Error{ErrorCode::unavailable,
                 "act as the owner of '" + data + "', uid " + uid + ": " + reason +
                     "; run `detent backup` as this user",
                 ""};
  }
  auto result = body();
  DETENT_CHECK(::seteuid(0) == 0 && ::setegid(group) == 0);
  return result;
}

/// Notes the figures of a complete backup and removes its checkpoint.
Result<void> end_stopped(const json::BackupBegun& begun, const Result<NewBackup>& made) {
  auto noted = made ? note_backup(begun.data, {.made_at = begun.made_at,
                                               .bytes = made->backup.bytes,
                                               .copied_bytes = made->copied_bytes})
                    : ok();
  TRY(remove_checkpoints(begun.data));
  return noted;
}

/// Opens the data folder as a server would.
Result<NewBackup> back_up_stopped(const cli::BackupOptions& options) {
  json::BackupBegun begun{.folder = {},
                          .data = fs::absolute(options.data).lexically_normal().string(),
                          .made_at = now()};
  ASSIGN_OR_RETURN(begun.folder,
                   as_owner(begun.data, [&begun] { return checkpoint_of_stopped(begun.data); }));
  Result<NewBackup> made = copy(options, begun);
  const Result<void> ended = as_owner(begun.data, [&] { return end_stopped(begun, made); });
  if (made && !ended) {
    made->warning += (made->warning.empty() ? "" : "; ") + ended.error().message;
  }
  return made;
}

int show_made(const cli::BackupOptions& options, const NewBackup& made, std::ostream& out) {
  if (options.format == cli::OutputFormat::json) {
    std::string text;
    json::JsonWriter json(text);
    json.begin_object();
    write_backup(json, made.backup);
    json.name("copied_bytes").number(made.copied_bytes);
    json.name("removed").begin_array();
    for (const std::uint32_t number : made.removed) json.number(number);
    json.end_array().end_object();
    out << text << '\n';
    return 0;
  }
  out << "backup " << made.backup.number << " in " << options.folder.string() << ": "
      << size_text(made.backup.bytes) << ", of which " << size_text(made.copied_bytes)
      << " were copied\n";
  if (!made.removed.empty()) {
    out << "removed " << (made.removed.size() == 1 ? "backup" : "backups");
    for (std::size_t i = 0; i < made.removed.size(); ++i) {
      out << (i == 0 ? " " : ", ") << made.removed[i];
    }
    out << '\n';
  }
  return 0;
}

int show_list(const cli::BackupOptions& options, const std::vector<StoredBackup>& all,
              std::ostream& out) {
  if (options.format == cli::OutputFormat::json) {
    std::string text;
    json::JsonWriter json(text);
    json.begin_object().name("backups").begin_array();
    for (const StoredBackup& backup : all) {
      json.begin_object();
      write_backup(json, backup);
      json.end_object();
    }
    json.end_array().end_object();
    out << text << '\n';
  } else {
    std::vector<cli::Row> rows{{"BACKUP", "MADE AT", "SIZE", "DATA FOLDER", "STATE"}};
    for (const StoredBackup& backup : all) {
      rows.push_back(
          {std::to_string(backup.number),
           backup.made_at == WallTime{} ? "-" : format_rfc3339(backup.made_at),
           size_text(backup.bytes), cli::printable(backup.folder),
           backup.damage.empty() ? "whole" : "damaged: " + cli::printable(backup.damage)});
    }
    cli::show_table(out, rows);
  }
  const bool is_whole =
      std::ranges::all_of(all, [](const StoredBackup& backup) { return backup.damage.empty(); });
  return static_cast<int>(is_whole ? cli::ExitCode::done : cli::ExitCode::failed);
}

}  // namespace

int run_backup(const cli::BackupOptions& options, std::ostream& out, std::ostream& err) {
  using Act = cli::BackupOptions::Act;
  if (options.act != Act::add) {
    const auto all =
        backups_in(options.folder.string(),
                   options.act == Act::check ? BackupCheck::checksums : BackupCheck::sizes);
    return all ? show_list(options, *all, out) : fail(err, all.error());
  }
  write_for_owner_only();
  const Result<NewBackup> made =
      options.data.empty() ? back_up_running(options, err) : back_up_stopped(options);
  if (!made) return fail(err, made.error());
  if (!made->warning.empty()) {
    err << "detent backup: the backup is complete, but this failed: " << made->warning << '\n';
  }
  return show_made(options, *made, out);
}

int run_restore_backup(const cli::RestoreBackupOptions& options, std::ostream& out,
                       std::ostream& err) {
  write_for_owner_only();
  const Result<StoredBackup> restored =
      restore_from_backup({.folder = fs::absolute(options.folder).lexically_normal().string(),
                           .number = options.number,
                           .data = options.data.string(),
                           .now = now()});
  if (!restored) return fail(err, restored.error());
  if (options.format == cli::OutputFormat::json) {
    std::string text;
    json::JsonWriter json(text);
    json.begin_object();
    write_backup(json, *restored);
    json.name("restored_to").string(options.data.string()).end_object();
    out << text << '\n';
    return 0;
  }
  out << "restored backup " << restored->number << " of " << format_rfc3339(restored->made_at)
      << " into " << options.data.string() << "\nstart the server with: detent serve --data "
      << options.data.string() << '\n';
  return 0;
}

}  // namespace detent::server
