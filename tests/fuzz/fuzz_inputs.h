// What the fuzzer, and the tests that replay what it found, do with one input: each function reads
// the bytes in its own way and stops the process (DETENT_CHECK) where a promise is broken that goes
// beyond "no crash": what was accepted means the same when it is written and read again, pieces are
// as good as the whole, a referee agrees.
//
// libFuzzer calls one of them (libfuzzer_entry.cc); the kept inputs are in corpus/, a folder each,
// and run in every test run (corpus_test.cc, server_corpus_test.cc).
#pragma once

#include <string_view>

namespace detent::fuzz {

/// The first byte says into how large pieces the rest is cut.
void beanstalk_commands(std::string_view input);
/// A file of settings for `detent serve`.
void config_files(std::string_view input);
/// As beanstalk_commands: a connection's bytes as requests, and as responses.
void http_messages(std::string_view input);
/// Requests with a 0 byte between them, each to all of the server's routes over a store in memory:
/// "POST /v1/tasks", header lines, an empty line, the body. "WAIT 1500" moves the clock by so many
/// milliseconds, "RESTART" stops the engine and opens it again.
void http_routes(std::string_view input);
/// A body for every parser of the JSON interface.
void json_bodies(std::string_view input);
/// A byte for the zone and one for the options, 8 for the time, then the expression.
void cron_expressions(std::string_view input);
/// A byte says how: fields of a task to write and read again, bytes to read, or fields under a seal
/// that fits. Then likewise a recurring schedule's.
void stored_tasks(std::string_view input);
void stored_schedules(std::string_view input);

}  // namespace detent::fuzz
