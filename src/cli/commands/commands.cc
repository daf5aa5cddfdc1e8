#include "cli/commands/commands.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/commands/bench_command.h"
#include "cli/commands/confirm.h"
#include "cli/commands/copy_commands.h"
#include "cli/commands/schedule_commands.h"
#include "cli/commands/top_command.h"
#include "cli/commands/top_terminal.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/stats_codec.h"
#include "task/limits.h"

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

std::string text_of(const client::TaskName& task) {
  if (const auto* id = std::get_if<std::uint64_t>(&task)) return std::to_string(*id);
  return printable(std::get<client::TaskKey>(task).key);
}

std::string purge_question(const client::Queue& queue) {
  return "Remove " + counted(queue.scheduled + queue.ready + queue.dead, "tasks") + " of " +
         printable(queue.name) + "?";
}

/// Runs one command of the variant. There is a call operator for each.
class Runner : private ResultPrinter {
 public:
  Runner(const ClientCall& call, Client& client, const Streams& streams)
      : ResultPrinter(call.format, client, streams), call_(call) {}

  ExitCode operator()(const PutCommand& put) {
    client::NewTask task = put.task;
    Result<client::Payload> payload = payload_of(put.payload, put.bytes);
    if (!payload) return fail_with(payload.error());
    task.payload = *std::move(payload);
    return show(client_.schedule(task), show_accepted);
  }

  ExitCode operator()(const GetCommand& get) { return show_wide(client_.get(get.task), show_task); }

  /// Requests pages until the limit is reached. JSON output prints each page as it comes.
  ExitCode operator()(const ListCommand& command) {
    constexpr std::size_t kPage = 1'000;
    std::vector<client::Task> tasks;
    client::ListOptions options = command.options;
    do {
      options.limit = std::min(command.options.limit - tasks.size(), kPage);
      ClientResult<client::TaskPage> page = client_.list(options);
      if (!page) return fail_with(to_error(page.error()));
      pass_on();
      std::ranges::move(page->tasks, std::back_inserter(tasks));
      options.cursor = std::move(page->cursor);
    } while (!options.cursor.empty() && tasks.size() < command.options.limit);
    if (format_ == OutputFormat::json) return ExitCode::done;
    if (tasks.empty()) tell_empty(options.queue.value_or(""), "no tasks");
    show_tasks(streams_.out, tasks, streams_.terminal.columns);
    if (!options.cursor.empty())
      streams_.err << "there may be more tasks; continue with --cursor "
                   << printable(options.cursor) << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const CancelCommand& cancel) {
    return show(client_.cancel(cancel.task),
                [&](std::ostream& out) { out << "cancelled " << text_of(cancel.task) << '\n'; });
  }

  ExitCode operator()(const MoveCommand& move) {
    return show(client_.move(move.task, move.due), show_accepted);
  }

  ExitCode operator()(const EditCommand& command) {
    client::TaskEdit edit = command.edit;
    if (command.payload) {
      Result<client::Payload> payload = payload_of(command.payload, command.bytes);
      if (!payload) return fail_with(payload.error());
      edit.payload = *std::move(payload);
    }
    return show(client_.edit(command.task, edit), show_accepted);
  }

  ExitCode operator()(const RunCommand& run) {
    return show(client_.run_now(run.id), show_accepted);
  }

  ExitCode operator()(const LeaseCommand& lease) {
    const auto leased = client_.lease(lease.queue, lease.options);
    const ExitCode code = show_wide(leased, show_leased);
    const bool is_empty = leased && leased->empty();
    if (is_empty && format_ == OutputFormat::people) tell_empty(lease.queue, "no task is ready");
    return code;
  }

  ExitCode operator()(const CompleteCommand& complete) {
    return show_each(complete.leases, complete_call);
  }

  ExitCode operator()(const FailCommand& fail) {
    return show_each(fail.leases, [&](Leases leases) { return fail_call(leases, fail.options); });
  }

  ExitCode operator()(const ExtendCommand& extend) {
    return show_each(extend.leases, [&](Leases leases) { return extend_call(leases, extend.by); });
  }

  ExitCode operator()(const ReleaseCommand& release) {
    return show_each(release.leases,
                     [&](Leases leases) { return release_call(leases, release.options); });
  }

  ExitCode operator()(const QueuesCommand& command) {
    if (!command.queue.empty()) return show(client_.queue(command.queue), show_queue);
    if (!command.is_list()) return show_wide(client_.queues(), show_queues);
    return list_queues(command);
  }

  ExitCode operator()(const PauseCommand& pause) {
    return show(client_.pause(pause.queue), [&pause](std::ostream& out, const client::Queue&) {
      out << "paused " << printable(pause.queue) << '\n';
    });
  }

  ExitCode operator()(const ResumeCommand& resume) {
    return show(client_.resume(resume.queue), [&resume](std::ostream& out, const client::Queue&) {
      out << "resumed " << printable(resume.queue) << '\n';
    });
  }

  ExitCode operator()(const PurgeCommand& purge) {
    if (!purge.yes && streams_.terminal.is_input_terminal) {
      const ClientResult<client::Queue> queue = client_.queue(purge.queue);
      if (!queue) return fail_with(to_error(queue.error()));
      if (!confirm(streams_, purge_question(*queue))) {
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
    return show(client_.change_queue(set.queue, set.change), show_queue);
  }

  ExitCode operator()(const RemoveQueueCommand& remove) {
    return show(client_.remove_queue(remove.queue),
                [&](std::ostream& out) { out << "removed " << printable(remove.queue) << '\n'; });
  }

  ExitCode operator()(const CallCommand& command) {
    constexpr std::size_t kMaxBody = std::size_t{16} << 20;
    std::string body = command.body == "-" ? read_all(streams_.in, kMaxBody) : command.body;
    const auto answer = client_.call(command.method, command.target, std::move(body));
    if (!answer) return fail_with(to_error(answer.error()));
    streams_.out << *answer;
    if (!answer->ends_with('\n')) streams_.out << '\n';
    return ExitCode::done;
  }

  ExitCode operator()(const StatsCommand&) {
    return show(client_.stats(), [this](std::ostream& out, const std::string& stats) {
      show_stats(out, json::parse_stats(stats).value(), streams_.terminal.columns);
    });
  }

  ExitCode operator()(const TopCommand& command) {
    return run_top(command, call_, client_, streams_, open_top_display);
  }

  ExitCode operator()(const BenchCommand& command) {
    const auto connect = [this] {
      return make_client_without_repeats(call_.server,
                                         {.token = call_.token, .ca_file = call_.ca_file});
    };
    return run_bench(command, format_, connect, SystemClock(), streams_);
  }

  ExitCode operator()(const ForecastCommand& forecast) {
    if (const auto valid = validate_forecast(forecast.span, forecast.bins); !valid) {
      return fail_with(valid.error());
    }
    const std::string target = "/v1/forecast?bins=" + std::to_string(forecast.bins) +
                               "&span=" + std::to_string(forecast.span.count()) + "ms";
    return show_wide(ClientInternals::of(client_).call(get_call(target), json::parse_forecast),
                     show_forecast);
  }

  ExitCode operator()(const DumpCommand& command) { return dump(command, client_, streams_); }
  ExitCode operator()(const RestoreCommand& command) {
    return restore(command, format_, client_, streams_);
  }
  ExitCode operator()(const ScheduleCommand& command) {
    return run_schedule_command(command, format_, client_, streams_);
  }

 private:
  Result<client::Payload> payload_of(const std::optional<std::string>& typed, bool is_bytes) {
    using Kind = client::Payload::Kind;
    return read_payload(typed, is_bytes ? Kind::bytes : Kind::json, streams_.in);
  }

  /// Says on standard error why a list is empty: `what`, or that there is no such queue. An empty
  /// `queue` stands for all queues.
  void tell_empty(const std::string& queue, const char* what) {
    if (!queue.empty()) {
      const ClientResult<client::Queue> known = client_.queue(queue);
      if (!known && known.error().code == ClientError::Code::not_found) {
        streams_.err << "no queue named '" << printable(queue) << "'\n";
        return;
      }
    }
    streams_.err << what << '\n';
  }

  /// Shows the pages of a list of queues.
  ExitCode list_queues(const QueuesCommand& command) {
    std::string target =
        "/v1/queues?sort=" + (command.sort.empty() ? "name" : percent_encode(command.sort));
    if (!command.state.empty()) target += "&state=" + percent_encode(command.state);
    if (!command.name.empty()) target += "&name=" + percent_encode(command.name);
    const std::uint64_t most = command.limit.value_or(~std::uint64_t{0});
    std::vector<client::Queue> queues;
    std::string cursor = command.cursor;
    do {
      const std::uint64_t limit = std::min(most - queues.size(), kMaxPage);
      std::string page_target = target + "&limit=" + std::to_string(limit);
      if (!cursor.empty()) page_target += "&cursor=" + percent_encode(cursor);
      const auto page =
          ClientInternals::of(client_).call(get_call(page_target), json::parse_queue_page);
      if (!page) return fail_with(to_error(page.error()));
      pass_on();
      for (const QueueView& view : page->queues) queues.push_back(to_client(view));
      cursor = page->cursor;
    } while (!cursor.empty() && queues.size() < most);
    if (format_ == OutputFormat::json) return ExitCode::done;
    show_queues(streams_.out, queues, streams_.terminal.columns);
    if (!cursor.empty()) {
      streams_.err << "there are more queues; continue with the same options and --cursor "
                   << printable(cursor) << '\n';
    }
    return ExitCode::done;
  }

  /// Like show(), but `show_people` also gets the width of the terminal.
  template <class T, class Show>
  ExitCode show_wide(const ClientResult<T>& result, const Show& show_people) {
    return show(result, [&](std::ostream& out, const T& value) {
      show_people(out, value, streams_.terminal.columns);
    });
  }

  /// Makes the call and shows the outcome of each lease. If one lease is no longer held, the
  /// command fails, although the other leases are done.
  ExitCode show_each(const std::vector<std::string>& leases,
                     const ClientInternals::Impl::LeaseVerb& verb) {
    const auto outcomes = ClientInternals::of(client_).call_leases(leases, verb);
    if (!outcomes) return fail_with(to_error(outcomes.error()));
    if (outcomes->size() != leases.size()) {
      return fail_with({ErrorCode::internal,
                        "unexpected answer: the server sent " +
                            counted(outcomes->size(), "results") + " for " +
                            counted(leases.size(), "leases"),
                        ""});
    }
    if (!pass_on()) show_outcomes(streams_.out, leases, *outcomes);
    const bool all_done = std::ranges::all_of(*outcomes, [](const auto& outcome) {
      return outcome && *outcome != client::LeaseStatus::conflict;
    });
    return all_done ? ExitCode::done : ExitCode::failed;
  }

  const ClientCall& call_;
};

}  // namespace

ExitCode run_command(const ClientCall& call, Client& client, const Streams& streams) {
  return std::visit(Runner(call, client, streams), call.command);
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

ExitCode fail_with(const Streams& streams, const Error& error) {
  show_error(streams.err, error);
  return exit_code_of(error.code);
}

bool ResultPrinter::pass_on() {
  if (format_ == OutputFormat::people) return false;
  const std::string answer = ClientInternals::of(client_).last_answer();
  if (!answer.empty()) streams_.out << answer << '\n';
  return true;
}

Result<client::Payload> read_payload(const std::optional<std::string>& typed,
                                     client::Payload::Kind kind, std::istream& in) {
  const bool is_bytes = kind == client::Payload::Kind::bytes;
  if (!typed) return is_bytes ? client::Payload{kind, ""} : client::Payload{};
  std::string text = *typed == "-" ? read_all(in, kMaxPayloadBytes) : *typed;
  if (!is_bytes) {
    const auto value = json::read_json(text);
    if (value) return client::Payload{kind, std::string(*value)};
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const bool begins_like_json = std::string_view("{[\"").find(text[first]) != std::string::npos;
    if (begins_like_json && text.size() <= kMaxPayloadBytes) {
      return Error{ErrorCode::invalid_argument,
                   "the payload begins like JSON but is not valid JSON: " + value.error().message +
                       "; to send it as bytes, add --bytes",
                   ""};
    }
  }
  return client::Payload{client::Payload::Kind::bytes, std::move(text)};
}

}  // namespace detent::cli
