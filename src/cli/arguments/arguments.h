// Parses the command line into a value. Parsing does not run the command, so tests need no server.
//
// arguments.cc and the *_arguments.cc files describe the command line to CLI11. The resulting value
// has been checked field by field.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/backup_options.h"
#include "cli/options/bench_options.h"
#include "cli/options/check_options.h"
#include "cli/options/schedule_options.h"
#include "cli/options/token_options.h"
#include "cli/options/top_options.h"
#include "cli/output/output_format.h"
#include "cli/settings/settings.h"
#include "detent/client.h"
#include "detent/clock.h"

namespace detent::cli {

enum class ExitCode : int { done = 0, failed = 1, usage = 2, not_found = 3 };

struct PutCommand {
  client::NewTask task;                // without its payload
  std::optional<std::string> payload;  // as typed; "-": read standard input; none: JSON null
  bool bytes = false;                  // treat the payload as bytes, even if it is valid JSON
};
struct GetCommand {
  client::TaskName task;
};
struct ListCommand {
  client::ListOptions options;  // its limit is for all pages together
};
struct CancelCommand {
  client::TaskName task;
};
struct MoveCommand {
  client::TaskName task;
  client::Due due;
};
struct EditCommand {
  client::TaskName task;
  client::TaskEdit edit;               // without its payload
  std::optional<std::string> payload;  // as for `put`; none: the payload does not change
  bool bytes = false;
};
struct RunCommand {
  std::uint64_t id = 0;
};
struct LeaseCommand {
  std::string queue;
  client::LeaseOptions options;
};
struct CompleteCommand {
  std::vector<std::string> leases;
};
struct FailCommand {
  std::vector<std::string> leases;
  client::FailOptions options;
};
struct ExtendCommand {
  std::vector<std::string> leases;
  std::chrono::milliseconds by{0};
};
struct ReleaseCommand {
  std::vector<std::string> leases;
  client::ReleaseOptions options;
};
struct QueuesCommand {
  std::string queue;  // empty: a list
  // The list; all empty: all queues by name.
  std::string sort = {};
  std::string state = {};
  std::string name = {};               // part of the names
  std::optional<std::uint64_t> limit;  // empty: all queues
  std::string cursor = {};

  bool is_list() const { return !(sort + state + name + cursor).empty() || limit; }
};
struct PauseCommand {
  std::string queue;
};
struct ResumeCommand {
  std::string queue;
};
struct PurgeCommand {
  std::string queue;
  bool yes = false;  // do not ask for confirmation
};
struct RedriveCommand {
  std::string queue;
};
struct SetQueueCommand {
  std::string queue;
  client::QueueChange change;
};
struct RemoveQueueCommand {
  std::string queue;
};
struct StatsCommand {};
struct ForecastCommand {
  std::chrono::milliseconds span = std::chrono::hours{24};
  std::size_t bins = 24;
};
struct DumpCommand {
  std::string file = "-";  // "-": standard output
};
struct RestoreCommand {
  std::string file;      // "-": standard input
  bool partial = false;  // accept a truncated dump
};

/// Any request of the HTTP interface, also one without a command of its own.
struct CallCommand {
  std::string method;
  std::string target;  // begins with a slash
  std::string body;    // "-": read standard input; empty: none
};

using ClientCommand =
    std::variant<StatsCommand, PutCommand, GetCommand, ListCommand, CancelCommand, MoveCommand,
                 EditCommand, RunCommand, LeaseCommand, CompleteCommand, FailCommand, ExtendCommand,
                 ReleaseCommand, QueuesCommand, PauseCommand, ResumeCommand, PurgeCommand,
                 RedriveCommand, SetQueueCommand, RemoveQueueCommand, ForecastCommand, DumpCommand,
                 RestoreCommand, ScheduleCommand, TopCommand, BenchCommand, CallCommand>;

/// A command that calls a server.
struct ClientCall {
  std::string server = "http://127.0.0.1:7070";
  std::string token;    // empty: no token is sent
  std::string ca_file;  // PEM file of trusted certificates; empty: those of the system
  OutputFormat format = OutputFormat::people;
  ClientCommand command;
};

struct CronNextCommand {
  std::size_t count = 5;
  std::optional<WallTime> after;  // none: now
};

/// `detent cron next`, or `detent cron explain` if `next` is empty. Needs no server.
struct CronCall {
  std::string expression;
  std::string zone = "UTC";
  OutputFormat format = OutputFormat::people;
  std::optional<CronNextCommand> next;
};

/// The command line asked for a text such as the help or the version, or it was wrong. The program
/// only prints `text`.
struct NothingToRun {
  ExitCode exit_code = ExitCode::done;
  std::string text;  // for standard output if exit_code is done, else for standard error
};

using Invocation = std::variant<ServeCall, CheckOptions, BackupOptions, RestoreBackupOptions,
                                ClientCall, CronCall, TokenOptions, NothingToRun>;

/// Reads a command line as main() gets it, with the name of the program first. An option that is
/// missing takes its value from its DETENT_… variable; an option of `serve` also from a file of
/// settings (setting_sources.h).
Invocation parse_arguments(int argc, const char* const* argv);

}  // namespace detent::cli
