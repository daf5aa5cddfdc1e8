#include "cli/commands.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/bench_command.h"
#include "cli/confirm.h"
#include "cli/copy_commands.h"
#include "cli/display.h"
#include "cli/schedule_commands.h"
#include "cli/top_command.h"
#include "cli/top_terminal.h"

namespace detent::cli {

namespace {

/// Reads `in` to its end, but at most `most` + 1 bytes. So an endless stream gives a text that is
/// too large, and the next check rejects it.
std::string read_all(std::istream& in, std::size_t most) {
  std::string text(most + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string text_of(const TaskName& task) {
  if (const TaskId* id = std::get_if<TaskId>(&task)) return to_string(*id);
  return printable(std::get<TaskKey>(task).key);
}

std::string purge_question(const QueueStats& queue) {
  return "Remove " + counted(queue.scheduled + queue.ready + queue.dead, "tasks") + " of " +
         printable(queue.queue) + "?";
}

/// Runs one command of the variant. There is a call operator for each.
class Runner {
 public:
  Runner(const ClientCall& call, ApiClient& client, const Streams& streams)
      : call_(call), client_(client), streams_(streams) {}

  ExitCode operator()(const PutCommand& put) {
    ScheduleRequest request = put.request;
    request.payload = read_payload(
        put.payload, put.bytes ? Payload::Kind::bytes : Payload::Kind::json, streams_.in);
    return show(client_.schedule(request), show_accepted);
  }

  ExitCode operator()(const GetCommand& get) { return show_wide(client_.get(get.task), show_task); }

  /// Requests pages until the limit is reached. JSON output prints each page as it comes.
  ExitCode operator()(const ListCommand& command) {
    constexpr std::size_t kPage = 1'000;
    std::vector<TaskSnapshot> tasks;
    std::string cursor = command.cursor;
    do {
      const std::size_t limit = std::min(command.limit - tasks.size(), kPage);
      Result<ApiClient::TaskList> page = client_.list(command.filter, limit, cursor);
      if (!page) return fail_with(page.error());
      pass_on();
      std::ranges::move(page->tasks, std::back_inserter(tasks));
      cursor = std::move(page->cursor);
    } while (!cursor.empty() && tasks.size() < command.limit);
    if (call_.format == OutputFormat::json) return ExitCode::done;
    show_tasks(streams_.out, tasks, streams_.terminal.columns);
    if (!cursor.empty())
      streams_.err << "there may be more tasks; continue with --cursor " << printable(cursor)
                   << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const CancelCommand& cancel) {
    const Result<void> done = client_.cancel(cancel.task);
    if (!done) return fail_with(done.error());
    if (!pass_on()) streams_.out << "cancelled " << text_of(cancel.task) << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const MoveCommand& move) {
    return show(client_.move(move.task, move.due), show_accepted);
  }

  ExitCode operator()(const EditCommand& command) {
    TaskEdit edit = command.edit;
    if (command.payload) {
      const auto kind = command.bytes ? Payload::Kind::bytes : Payload::Kind::json;
      edit.payload = read_payload(command.payload, kind, streams_.in);
    }
    return show(client_.edit(command.task, edit), show_accepted);
  }

  ExitCode operator()(const RunCommand& run) {
    return show(client_.run_now(run.id), show_accepted);
  }

  ExitCode operator()(const LeaseCommand& lease) {
    return show_wide(client_.lease(lease.request, lease.wait), show_leased);
  }

  ExitCode operator()(const CompleteCommand& complete) {
    return show_each(complete.leases, client_.complete(complete.leases));
  }

  ExitCode operator()(const FailCommand& fail) {
    return show_each(fail.leases, client_.fail(fail.leases, {fail.delay, fail.error}));
  }

  ExitCode operator()(const ExtendCommand& extend) {
    return show_each(extend.leases, client_.extend(extend.leases, extend.by));
  }

  ExitCode operator()(const ReleaseCommand& release) {
    return show_each(release.leases, client_.release(release.leases, release.release));
  }

  ExitCode operator()(const QueuesCommand& command) {
    if (!command.queue.empty()) return show(client_.queue(command.queue), show_queue);
    return show_wide(client_.queues(), show_queues);
  }

  ExitCode operator()(const PauseCommand& pause) {
    return show(client_.pause(pause.queue), [&pause](std::ostream& out, const QueueView&) {
      out << "paused " << printable(pause.queue) << '\n';
    });
  }

  ExitCode operator()(const ResumeCommand& resume) {
    return show(client_.resume(resume.queue), [&resume](std::ostream& out, const QueueView&) {
      out << "resumed " << printable(resume.queue) << '\n';
    });
  }

  ExitCode operator()(const PurgeCommand& purge) {
    if (!purge.yes && streams_.terminal.is_input_terminal) {
      const Result<QueueView> queue = client_.queue(purge.queue);
      if (!queue) return fail_with(queue.error());
      if (!confirm(streams_, purge_question(queue->stats))) {
        return fail_with({ErrorCode::conflict, "nothing was removed", ""});
      }
    }
    return show(client_.purge(purge.queue), [](std::ostream& out, std::uint64_t count) {
      out << "removed " << counted(count, "tasks") << '\n';
    });
  }

  ExitCode operator()(const RedriveCommand& redrive) {
    return show(client_.redrive(redrive.queue), [](std::ostream& out, std::uint64_t count) {
      out << counted(count, "dead tasks") << (count == 1 ? " is" : " are") << " due now\n";
    });
  }

  ExitCode operator()(const SetQueueCommand& set) {
    return show(client_.change_queue(set.queue, set.patch), show_queue);
  }

  ExitCode operator()(const RemoveQueueCommand& remove) {
    const Result<void> done = client_.remove_queue(remove.queue);
    if (!done) return fail_with(done.error());
    if (!pass_on()) streams_.out << "removed " << printable(remove.queue) << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const CallCommand& command) {
    constexpr std::size_t kMaxBody = std::size_t{16} << 20;
    std::string body = command.body == "-" ? read_all(streams_.in, kMaxBody) : command.body;
    const Result<void> done = client_.ask(command.method, command.target, std::move(body));
    if (!done) return fail_with(done.error());
    streams_.out << client_.last_answer();
    if (!client_.last_answer().ends_with('\n')) streams_.out << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const StatsCommand&) { return show_wide(client_.stats(), show_stats); }

  ExitCode operator()(const TopCommand& command) {
    return run_top(command, call_, client_, streams_, open_top_display);
  }

  ExitCode operator()(const BenchCommand& command) {
    const auto connect = [this] {
      return ApiClient::create(call_.server, std::chrono::seconds{30},
                               {.token = call_.token, .ca_file = call_.ca_file});
    };
    return run_bench(command, call_.format, connect, SystemClock(), streams_);
  }

  ExitCode operator()(const ForecastCommand& forecast) {
    return show_wide(client_.forecast(forecast.span, forecast.bins), show_forecast);
  }

  ExitCode operator()(const DumpCommand& command) { return dump(command, client_, streams_); }
  ExitCode operator()(const RestoreCommand& command) {
    return restore(command, call_.format, client_, streams_);
  }
  ExitCode operator()(const ScheduleCommand& command) {
    return run_schedule_command(command, call_.format, client_, streams_);
  }

 private:
  /// With --json: prints the answer of the server and returns true. Else returns false, and the
  /// caller prints the result for people.
  bool pass_on() {
    if (call_.format == OutputFormat::people) return false;
    if (!client_.last_answer().empty()) streams_.out << client_.last_answer() << '\n';
    return true;
  }

  ExitCode fail_with(const Error& error) {
    show_error(streams_.err, error);
    return exit_code_of(error.code);
  }

  template <class T, class Show>
  ExitCode show(const Result<T>& result, Show show_people) {
    if (!result) return fail_with(result.error());
    if (!pass_on()) show_people(streams_.out, *result);
    return ExitCode::done;
  }

  /// Like show(), but `show_people` also gets the width of the terminal.
  template <class T, class Show>
  ExitCode show_wide(const Result<T>& result, Show show_people) {
    return show(result, [this, show_people](std::ostream& out, const T& value) {
      show_people(out, value, streams_.terminal.columns);
    });
  }

  /// Shows the outcome of each lease. If one lease is no longer held, the command fails, although
  /// the other leases are done.
  ExitCode show_each(const std::vector<std::string>& leases,
                     const Result<std::vector<Result<LeaseOutcome>>>& outcomes) {
    if (!outcomes) return fail_with(outcomes.error());
    if (outcomes->size() != leases.size()) {
      return fail_with({ErrorCode::internal,
                        "unexpected answer: the server sent " +
                            counted(outcomes->size(), "results") + " for " +
                            counted(leases.size(), "leases"),
                        ""});
    }
    if (!pass_on()) show_outcomes(streams_.out, leases, *outcomes);
    const bool all_done =
        std::all_of(outcomes->begin(), outcomes->end(), [](const Result<LeaseOutcome>& outcome) {
          return outcome && *outcome != LeaseOutcome::conflict;
        });
    return all_done ? ExitCode::done : ExitCode::failed;
  }

  const ClientCall& call_;
  ApiClient& client_;
  const Streams& streams_;
};

}  // namespace

ExitCode run_command(const ClientCall& call, ApiClient& client, const Streams& streams) {
  return std::visit(Runner(call, client, streams), call.command);
}

Payload read_payload(const std::optional<std::string>& typed, Payload::Kind kind,
                     std::istream& in) {
  const bool is_bytes = kind == Payload::Kind::bytes;
  if (!typed) return is_bytes ? Payload{kind, ""} : Payload{};
  std::string text = *typed == "-" ? read_all(in, kMaxPayloadBytes) : *typed;
  if (is_bytes) return {kind, std::move(text)};
  return payload_from_text(text);
}

ExitCode exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::not_found:
      return ExitCode::not_found;
    case ErrorCode::invalid_argument:
      return ExitCode::usage;
    case ErrorCode::forbidden:
    case ErrorCode::conflict:
    case ErrorCode::too_large:
    case ErrorCode::resource_exhausted:
    case ErrorCode::unavailable:
    case ErrorCode::data_loss:
    case ErrorCode::internal:
      return ExitCode::failed;
  }
  return ExitCode::failed;  // unreachable for a valid ErrorCode
}

}  // namespace detent::cli
