// The functions that the fuzzer and the replaying tests run with one input. Each function
// interprets the bytes in its own way. It stops the process (DETENT_CHECK) if the input breaks a
// promise. The promises go beyond "no crash":
//
//  - Accepted data has the same meaning after it is written and read again.
//  - Reading in pieces gives the same result as reading in one piece.
//  - An independent implementation agrees.
//
// libFuzzer calls one of the functions (libfuzzer_entry.cc). corpus/ has a folder of stored inputs
// for each function. Each test run replays them (corpus_test.cc, server_corpus_test.cc).
#pragma once

#include <string_view>

namespace detent::fuzz {

/// The first byte gives the size of the pieces into which the rest is cut.
void beanstalk_commands(std::string_view input);
/// A file of settings for `detent serve`.
void config_files(std::string_view input);
/// As beanstalk_commands(): the bytes of a connection, as requests and as responses.
void http_messages(std::string_view input);
/// Requests to all routes of the server, with a store in memory. A 0 byte separates them. A request
/// is "POST /v1/tasks", header lines, an empty line and the body. "WAIT 1500" moves the clock by
/// this number of milliseconds. "RESTART" stops the engine and opens it again.
void http_routes(std::string_view input);
/// A body, for each parser of the JSON interface.
void json_bodies(std::string_view input);
/// One byte for the zone, one for the options, 8 for the time, then the expression.
void cron_expressions(std::string_view input);
/// The first byte selects one of three uses: fields of a task to write and read again, raw bytes to
/// read, or bytes to seal and read. stored_schedules() does the same for a recurring schedule.
void stored_tasks(std::string_view input);
void stored_schedules(std::string_view input);

}  // namespace detent::fuzz
