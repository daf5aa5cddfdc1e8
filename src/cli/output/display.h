// Prints answers as text for people: lines, and tables with aligned columns. Payloads and errors
// can contain any bytes, so the functions print them as printable text on one line.
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
#include "cli/output/text_table.h"
#include "client/client_impl.h"
#include "protocol/json/answer.h"
#include "task/forecast.h"

namespace detent::cli {

/// The payload on one line. Bytes are shown as in printable(text) below. White space of JSON
/// becomes spaces, and its backslashes stay.
std::string printable(const client::Payload& payload);
/// `text` on one line. Valid UTF-8 is shown as it is, except control characters and backslashes,
/// which are shown as \xNN. So are bytes that are not UTF-8.
std::string printable(std::string_view text);

/// "1 task", "2 tasks". `things` is a plural that ends in "s".
std::string counted(std::uint64_t count, std::string_view things);

void show_accepted(std::ostream& out, const client::ScheduledTask& task);
/// `columns` of this and the following functions is the width of the terminal. Long values are cut
/// so that lines fit. 0: no value is cut.
void show_task(std::ostream& out, const client::Task& task, std::size_t columns);
/// One row per task.
void show_tasks(std::ostream& out, std::span<const client::Task> tasks, std::size_t columns);
void show_leased(std::ostream& out, std::span<const client::LeasedTask> tasks, std::size_t columns);
void show_outcomes(std::ostream& out, std::span<const std::string> leases,
                   std::span<const ClientResult<client::LeaseStatus>> outcomes);
/// One row per queue.
void show_queues(std::ostream& out, std::span<const client::Queue> queues, std::size_t columns);
/// One queue with all its settings. A default is shown where the queue has no own value.
void show_queue(std::ostream& out, const client::Queue& queue);
/// Printed instead of the figures of the whole server.
inline constexpr std::string_view kSomeQueuesOnly =
    "figures of the whole server are not shown, because the token is for some queues only";
void show_stats(std::ostream& out, const json::ServerStats& stats, std::size_t columns);
/// One row per bin. On a terminal (`columns` > 0) each row has a bar.
void show_forecast(std::ostream& out, const Forecast& forecast, std::size_t columns);
/// Prints "detent: MESSAGE (FIELD)", and no field if something was not found. If the connection
/// failed, a second line says what can help.
void show_error(std::ostream& err, const Error& error);

}  // namespace detent::cli
