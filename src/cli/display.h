// Answers as text for people: lines and tables whose columns line up. Whatever bytes a payload or
// an error holds, a terminal gets printable ones on one line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/text_table.h"
#include "client/api_client.h"

namespace detent::cli {

/// `text` on one line: control characters and bytes that are no ASCII are shown as \xNN in bytes;
/// in JSON, where such characters can only be white space, that becomes a blank.
std::string printable(const Payload& payload);
std::string printable(std::string_view text);

/// "1 task", "2 tasks"; `things` that end in an s.
std::string counted(std::uint64_t count, std::string_view things);

/// "1500ms", "90s": exact, in the largest unit that is.
std::string show_duration(std::chrono::milliseconds duration);
/// "3h 12m", "1s 500ms": rounded down to the two largest units that say something.
std::string show_age(std::chrono::milliseconds age);

void show_accepted(std::ostream& out, const ApiClient::AcceptedTask& task);
/// In those that take `columns`, what is too long is cut so that no line is longer, where that can
/// be; 0: nothing is.
void show_task(std::ostream& out, const TaskSnapshot& view, std::size_t columns);
/// A row a task.
void show_tasks(std::ostream& out, std::span<const TaskSnapshot> tasks, std::size_t columns);
void show_leased(std::ostream& out, std::span<const ApiClient::LeasedTask> tasks,
                 std::size_t columns);
void show_outcomes(std::ostream& out, std::span<const std::string> leases,
                   std::span<const Result<LeaseOutcome>> outcomes);
/// A row a queue.
void show_queues(std::ostream& out, std::span<const QueueView> queues, std::size_t columns);
/// With the settings in force, whether they are its own or defaults.
void show_queue(std::ostream& out, const QueueView& view);
/// Instead of the figures of the whole server.
inline constexpr std::string_view kSomeQueuesOnly =
    "the token is for some queues: figures of the whole server are not shown";
void show_stats(std::ostream& out, const ApiClient::Stats& stats, std::size_t columns);
/// A row a bin; with a bar each where a terminal is `columns` wide, without any for 0.
void show_forecast(std::ostream& out, const Forecast& forecast, std::size_t columns);
/// "detent: <what went wrong> (<field>)"; below it what may help where nobody answered.
void show_error(std::ostream& err, const Error& error);

}  // namespace detent::cli
