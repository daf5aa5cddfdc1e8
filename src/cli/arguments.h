// The command line as a value. Nothing is done here, so all of it can be tested without a server.
//
// CLI11 reads it (arguments.cc and *_arguments.cc); what comes out has been checked field
// by field and needs no further reading.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/bench_options.h"
#include "cli/check_options.h"
#include "cli/output_format.h"
#include "cli/schedule_options.h"
#include "cli/settings.h"
#include "cli/token_options.h"
#include "cli/top_options.h"
#include "client/task_name.h"
#include "detent/clock.h"
#include "protocol/json/queue_patch.h"
#include "protocol/json/request_renderer.h"
#include "task/request.h"
#include "task/task_filter.h"

namespace detent::cli {

enum class ExitCode : int { done = 0, failed = 1, usage = 2, not_found = 3 };

struct PutCommand {
  ScheduleRequest request;             // but for its payload
  std::optional<std::string> payload;  // as typed; "-": what comes on standard input; none: null
  bool bytes = false;                  // the payload is bytes, even if it could be JSON
};
struct GetCommand {
  TaskName task;
};
struct ListCommand {
  TaskFilter filter;
  std::size_t limit = 100;
  std::string cursor;  // where it goes on; empty: from the start
};
struct CancelCommand {
  TaskName task;
};
struct MoveCommand {
  TaskName task;
  Due due;
};
struct EditCommand {
  TaskName task;
  TaskEdit edit;                       // but for its payload
  std::optional<std::string> payload;  // as typed, as for `put`; none: it stays
  bool bytes = false;
};
struct RunCommand {
  TaskId id;
};
struct LeaseCommand {
  LeaseRequest request;
  std::chrono::milliseconds wait{0};
};
struct CompleteCommand {
  std::vector<std::string> leases;
};
struct FailCommand {
  std::vector<std::string> leases;
  std::optional<std::chrono::milliseconds> delay;
  std::string error;
};
struct ExtendCommand {
  std::vector<std::string> leases;
  std::chrono::milliseconds by{0};
};
struct ReleaseCommand {
  std::vector<std::string> leases;
  json::Release release;
};
struct QueuesCommand {
  std::string queue;  // empty: all
};
struct PauseCommand {
  std::string queue;
};
struct ResumeCommand {
  std::string queue;
};
struct PurgeCommand {
  std::string queue;
  bool yes = false;  // nobody is asked
};
struct RedriveCommand {
  std::string queue;
};
struct SetQueueCommand {
  std::string queue;
  json::QueuePatch patch;
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
  bool partial = false;  // also what was cut off
};

/// Any request, for what has no command.
struct CallCommand {
  std::string method;
  std::string target;  // begins with a slash
  std::string body;    // "-": what comes on standard input; empty: none
};

using ClientCommand =
    std::variant<StatsCommand, PutCommand, GetCommand, ListCommand, CancelCommand, MoveCommand,
                 EditCommand, RunCommand, LeaseCommand, CompleteCommand, FailCommand, ExtendCommand,
                 ReleaseCommand, QueuesCommand, PauseCommand, ResumeCommand, PurgeCommand,
                 RedriveCommand, SetQueueCommand, RemoveQueueCommand, ForecastCommand, DumpCommand,
                 RestoreCommand, ScheduleCommand, TopCommand, BenchCommand, CallCommand>;

/// A command to a server elsewhere.
struct ClientCall {
  std::string server = "http://127.0.0.1:7070";
  std::string token;    // empty: none is sent
  std::string ca_file;  // certificates that are trusted; empty: the system's
  OutputFormat format = OutputFormat::people;
  ClientCommand command;
};

struct CronNextCommand {
  std::size_t count = 5;
  std::optional<WallTime> after;  // none: now
};

/// `detent cron next` or, without `next`, `detent cron explain`. Needs no server.
struct CronCall {
  std::string expression;
  std::string zone = "UTC";
  OutputFormat format = OutputFormat::people;
  std::optional<CronNextCommand> next;
};

/// The command line asked for help or the version, or was wrong: there is nothing to run.
struct NothingToRun {
  ExitCode exit_code = ExitCode::done;
  std::string text;  // for standard output when done, else for standard error
};

using Invocation =
    std::variant<ServeCall, CheckOptions, ClientCall, CronCall, TokenOptions, NothingToRun>;

/// Reads a command line as main() gets it, program name first, and for what it leaves out DETENT_…
/// from the environment; `serve` also a file of settings (setting_sources.h).
Invocation parse_arguments(int argc, const char* const* argv);

}  // namespace detent::cli
