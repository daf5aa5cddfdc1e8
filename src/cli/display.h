// Answers as text for people: lines and tables whose columns line up. Whatever bytes a payload or
// an error holds, a terminal gets printable ones on one line.
#pragma once

#include <chrono>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/client.h"

namespace detent::cli {

/// `text` on one line: control characters and bytes that are no ASCII are shown as \xNN in bytes;
/// in JSON, where such characters can only be white space, that becomes a blank.
std::string printable(const Payload& payload);
std::string printable(std::string_view text);

/// Rows, the first one the heads; two blanks between columns, none at the end.
using Row = std::vector<std::string>;
void show_table(std::ostream& out, const std::vector<Row>& rows);
/// "1500ms", "90s": exact, in the largest unit that is.
std::string show_duration(std::chrono::milliseconds duration);

void show_accepted(std::ostream& out, const Client::AcceptedTask& task);
void show_task(std::ostream& out, const TaskSnapshot& view);
/// A row a task, in at most `columns` where that can be: payloads that are too long are cut; 0:
/// not.
void show_tasks(std::ostream& out, std::span<const TaskSnapshot> tasks, std::size_t columns);
void show_leased(std::ostream& out, std::span<const Client::LeasedTask> tasks);
void show_outcomes(std::ostream& out, std::span<const std::string> leases,
                   std::span<const Result<LeaseOutcome>> outcomes);
/// A row a queue, in at most `columns` where that can be: names that are too long are cut; 0: not.
void show_queues(std::ostream& out, std::span<const QueueView> queues, std::size_t columns);
/// With the settings in force, whether they are its own or defaults.
void show_queue(std::ostream& out, const QueueView& view);
void show_stats(std::ostream& out, const Client::Stats& stats);
/// A row a bin; with a bar each where a terminal is `columns` wide, without any for 0.
void show_forecast(std::ostream& out, const Forecast& forecast, std::size_t columns);
/// "detent: <what went wrong> (<field>)".
void show_error(std::ostream& err, const Error& error);

}  // namespace detent::cli
