#include "cli/commands/bench_command.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "cli/output/progress.h"
#include "protocol/json/json_writer.h"

namespace detent::cli {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// The duration of each call of one kind.
using Latencies = std::vector<nanoseconds>;

/// The measurements of one connection.
struct Measured {
  Latencies put = {};
  Latencies lease = {};
  Latencies complete = {};
};

/// State that the connections share: the rest of the work, and the first error. Thread-safe.
class Work {
 public:
  Work(std::size_t tasks, Progress& progress) : left_(tasks), tasks_(tasks), progress_(progress) {}

  /// Gives at most `most` tasks to the caller. Returns their number; 0 means that no task is left
  /// or that a connection failed.
  std::size_t take(std::size_t most) DETENT_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const std::size_t taken = error_ ? 0 : std::min(most, left_);
    left_ -= taken;
    return taken;
  }
  void note_done(std::size_t count) DETENT_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    done_ += count;
    progress_.at(done_);
  }
  bool is_over() const DETENT_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    return error_ || done_ >= tasks_;
  }
  void fail(Error error) DETENT_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    if (!error_) error_ = std::move(error);
  }
  std::optional<Error> error() const DETENT_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    return error_;
  }

 private:
  mutable Mutex mu_;
  std::size_t left_ DETENT_GUARDED_BY(mu_);
  std::size_t done_ DETENT_GUARDED_BY(mu_) = 0;
  std::optional<Error> error_ DETENT_GUARDED_BY(mu_);
  const std::size_t tasks_;
  Progress& progress_ DETENT_GUARDED_BY(mu_);
};

/// One connection. Each one is used by one thread only.
class Caller {
 public:
  Caller(const BenchCommand& command, Client client, const Clock& clock)
      : command_(command), client_(std::move(client)), clock_(clock) {}

  Result<void> put(Work& work) {
    const client::NewTask task{
        .queue = command_.queue,
        .payload = {client::Payload::Kind::bytes, std::string(command_.payload_bytes, 'x')}};
    while (const std::size_t count = work.take(command_.batch)) {
      const std::vector<client::NewTask> tasks(count, task);
      const MonotonicTime start = clock_.now();
      ASSIGN_OR_RETURN(const auto results, to_result(client_.schedule_many(tasks)));
      measured_.put.push_back(clock_.now() - start);
      for (const auto& result : results) {
        if (!result) return to_error(result.error());
      }
      work.note_done(results.size());
    }
    return ok();
  }

  Result<void> lease_and_complete(Work& work) {
    constexpr std::chrono::milliseconds kWait{500};
    constexpr std::chrono::seconds kLongestInVain{10};  // without any task
    std::chrono::milliseconds wait{0};
    MonotonicTime last = clock_.now();  // when this connection got tasks
    while (!work.is_over()) {
      const MonotonicTime start = clock_.now();
      ASSIGN_OR_RETURN(
          const auto tasks,
          to_result(client_.lease(command_.queue, {.max = command_.batch, .wait = wait})));
      if (tasks.empty()) {
        wait = kWait;
        if (clock_.now() - last < kLongestInVain) continue;
        return Error{ErrorCode::unavailable,
                     "the server handed out no task for 10 s, although not all tasks are completed",
                     "queue"};
      }
      wait = std::chrono::milliseconds{0};
      measured_.lease.push_back(clock_.now() - start);
      TRY(complete(tasks, work));
      last = clock_.now();
    }
    return ok();
  }

  const Measured& measured() const noexcept { return measured_; }

 private:
  Result<void> complete(const std::vector<client::LeasedTask>& tasks, Work& work) {
    std::vector<std::string> leases;
    for (const client::LeasedTask& task : tasks) leases.push_back(task.lease);
    const MonotonicTime start = clock_.now();
    const auto outcomes = ClientInternals::of(client_).call_leases(leases, complete_call);
    if (!outcomes) return to_error(outcomes.error());
    measured_.complete.push_back(clock_.now() - start);
    for (const auto& outcome : *outcomes) {
      if (!outcome) return to_error(outcome.error());
    }
    work.note_done(outcomes->size());
    return ok();
  }

  const BenchCommand& command_;
  Client client_;
  const Clock& clock_;
  Measured measured_;
};

/// One row of the result.
struct Figures {
  const char* verb;
  double tasks_per_second = 0;
  Latencies latencies = {};  // sorted

  microseconds quantile(double part) const {
    if (latencies.empty()) return {};
    const auto last = static_cast<double>(latencies.size() - 1);
    const auto at = static_cast<std::size_t>(std::lround(part * last));
    return std::chrono::round<microseconds>(latencies[at]);
  }
};

class Bench {
 public:
  Bench(const BenchCommand& command, const Clock& clock, const Streams& streams)
      : command_(command), clock_(clock), streams_(streams) {}

  Result<void> connect(const Connect& connect) {
    for (std::size_t i = 0; i < command_.connections; ++i) {
      ASSIGN_OR_RETURN(Client client, connect());
      callers_.emplace_back(command_, std::move(client), clock_);
    }
    return ok();
  }

  Result<std::vector<Figures>> run() {
    ASSIGN_OR_RETURN(const double put, phase("put:", &Caller::put));
    ASSIGN_OR_RETURN(const double done, phase("completed:", &Caller::lease_and_complete));
    return std::vector<Figures>{figures("put", put, &Measured::put),
                                figures("lease", done, &Measured::lease),
                                figures("complete", done, &Measured::complete)};
  }

 private:
  /// Runs `part` on all connections at the same time. Returns the tasks per second.
  Result<double> phase(const char* what, Result<void> (Caller::*part)(Work&)) {
    using Shown = Progress::Shown;
    Progress progress(streams_.err,
                      streams_.terminal.is_error_terminal ? Shown::line_that_changes : Shown::lines,
                      what);
    Work work(command_.tasks, progress);
    const MonotonicTime start = clock_.now();
    {
      std::vector<Thread> threads;
      for (Caller& caller : callers_) {
        threads.emplace_back([&caller, &work, part] {
          if (const Result<void> done = (caller.*part)(work); !done) work.fail(done.error());
        });
      }
    }
    const std::chrono::duration<double> elapsed = clock_.now() - start;
    if (auto error = work.error()) return *std::move(error);
    return static_cast<double>(command_.tasks) / std::max(elapsed.count(), 1e-9);
  }

  Figures figures(const char* verb, double rate, Latencies Measured::*latencies) const {
    Figures all{.verb = verb, .tasks_per_second = rate};
    for (const Caller& caller : callers_) {
      std::ranges::copy(caller.measured().*latencies, std::back_inserter(all.latencies));
    }
    std::ranges::sort(all.latencies);
    return all;
  }

  const BenchCommand& command_;
  const Clock& clock_;
  const Streams& streams_;
  std::vector<Caller> callers_;
};

/// Fails if the queue cannot be used. Returns whether the queue exists.
Result<bool> require_empty(Client& client, const std::string& queue) {
  const Result<client::Queue> found = to_result(client.queue(queue));
  if (!found) {
    if (found.error().code == ErrorCode::not_found) return false;
    return found.error();
  }
  if (found->scheduled + found->ready + found->leased + found->dead > 0) {
    return Error{ErrorCode::conflict,
                 "the queue " + queue +
                     " has tasks, and bench would complete them; name an empty queue with --queue",
                 "queue"};
  }
  if (found->settings.paused) {
    return Error{ErrorCode::conflict,
                 "the queue " + queue + " is paused; resume it, or name another queue with --queue",
                 "queue"};
  }
  return true;
}

void show_figures(std::ostream& out, const BenchCommand& command,
                  const std::vector<Figures>& rows) {
  out << command.tasks << " tasks of " << command.payload_bytes << " bytes, " << command.batch
      << " per call, " << command.connections << " connections\n";
  std::vector<Row> table{{"", "TASKS/S", "CALLS", "P50 US", "P99 US", "MAX US"}};
  for (const Figures& row : rows) {
    table.push_back(
        {row.verb, std::to_string(static_cast<std::uint64_t>(row.tasks_per_second)),
         std::to_string(row.latencies.size()), std::to_string(row.quantile(0.5).count()),
         std::to_string(row.quantile(0.99).count()), std::to_string(row.quantile(1).count())});
  }
  show_table(out, table);
}

void show_json(std::ostream& out, const BenchCommand& command, const std::vector<Figures>& rows) {
  std::string text;
  json::JsonWriter json(text);
  json.begin_object().name("tasks").number(command.tasks);
  json.name("payload_bytes").number(command.payload_bytes);
  json.name("batch").number(command.batch);
  json.name("connections").number(command.connections);
  for (const Figures& row : rows) {
    json.name(row.verb).begin_object();
    json.name("tasks_per_second").number(static_cast<std::uint64_t>(row.tasks_per_second));
    json.name("calls").number(row.latencies.size());
    json.name("p50_us").number(row.quantile(0.5).count());
    json.name("p99_us").number(row.quantile(0.99).count());
    json.name("max_us").number(row.quantile(1).count());
    json.end_object();
  }
  json.end_object();
  out << text << '\n';
}

Result<std::vector<Figures>> measure(const BenchCommand& command, const Connect& connect,
                                     const Clock& clock, const Streams& streams) {
  ASSIGN_OR_RETURN(Client client, connect());
  ASSIGN_OR_RETURN(const bool was_there, require_empty(client, command.queue));
  Bench bench(command, clock, streams);
  TRY(bench.connect(connect));
  ASSIGN_OR_RETURN(std::vector<Figures> figures, bench.run());
  // The server does not remove a queue with tasks, which another client may have put by now.
  if (!was_there) (void)client.remove_queue(command.queue);
  return figures;
}

}  // namespace

ExitCode run_bench(const BenchCommand& command, OutputFormat format, const Connect& connect,
                   const Clock& clock, const Streams& streams) {
  const Result<std::vector<Figures>> figures = measure(command, connect, clock, streams);
  if (!figures) return fail_with(streams, figures.error());
  if (format == OutputFormat::json) {
    show_json(streams.out, command, *figures);
  } else {
    show_figures(streams.out, command, *figures);
  }
  return ExitCode::done;
}

}  // namespace detent::cli
