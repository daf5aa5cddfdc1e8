// Gives one body to each parser of the JSON interface. Boost.JSON decides which texts are JSON. If
// a parser accepts the body, the value must be the same after it is written and read again. If a
// parser refuses it, the error must be usable for a client.
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "detent/check.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/schedule_codec.h"
#include "protocol/json/stats_codec.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {

namespace {

void agree_with_boost(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = json::kMaxJsonDepth;
  boost::json::parser parser({}, options);
  boost::json::error_code error;
  parser.write(text.data(), text.size(), error);
  const Result<std::string_view> ours = json::read_json(text);
  // Boost.JSON converts numbers. A number with a too large exponent is an error there, but it is
  // well-formed JSON.
  if (error == boost::json::error::exponent_overflow) return;
  DETENT_CHECK(ours.has_value() == !error);
  if (!ours || json::kind_of(*ours) != json::JsonKind::string) return;
  const boost::json::value value = parser.release();
  DETENT_CHECK(std::string_view(value.get_string()) == json::unescape(*ours));
}

template <class T>
void expect_usable(const Result<T>& result) {
  if (result) return;
  const Error& error = result.error();
  DETENT_CHECK(!error.message.empty());
  const Error again =
      json::parse_problem(json::http_status(error.code), json::render_problem(error));
  DETENT_CHECK(again.code == error.code);
}

void expect_same_again(const Result<ScheduleRequest>& request) {
  expect_usable(request);
  if (!request) return;
  const auto again = json::parse_schedule(json::render_schedule(*request));
  DETENT_CHECK(again.has_value());
  DETENT_CHECK(again->queue == request->queue && again->key == request->key);
  DETENT_CHECK(again->payload == request->payload);
  DETENT_CHECK(again->rules == request->rules);
  DETENT_CHECK(again->due == request->due);
  DETENT_CHECK(content_hash(*again) == content_hash(*request));
}

void expect_same_again(const Result<json::QueuePatch>& patch) {
  expect_usable(patch);
  if (!patch) return;
  DETENT_CHECK(json::parse_queue_patch(json::render_queue_patch(*patch)).value() == *patch);
}

void expect_same_again(const Result<RecurringSchedule>& schedule) {
  expect_usable(schedule);
  if (!schedule) return;
  const auto again = json::parse_schedule_rule("s", json::render_schedule_rule(*schedule));
  DETENT_CHECK(again.has_value() && *again == *schedule);
}

void expect_same_again(const Result<json::LeaseCall>& call) {
  expect_usable(call);
  if (!call) return;
  const auto again = json::parse_lease("q", json::render_lease(*call));
  DETENT_CHECK(again.has_value());
  DETENT_CHECK(again->wait == call->wait && again->lease.max == call->lease.max);
  DETENT_CHECK(again->lease.visibility_timeout == call->lease.visibility_timeout);
  DETENT_CHECK(again->lease.worker == call->lease.worker);
}

void read_requests(std::string_view body) {
  expect_same_again(json::parse_schedule(body));
  for (const char* type : {"", "application/x-ndjson"}) {
    const auto batch = json::parse_schedule_batch(body, type);
    expect_usable(batch);
    if (!batch) continue;
    for (const auto& element : *batch) expect_same_again(element);
  }
  expect_same_again(json::parse_lease("q", body));
  expect_same_again(json::parse_queue_patch(body));
  expect_same_again(json::parse_schedule_rule("s", body));
  expect_usable(json::parse_edit(body));
  expect_usable(json::parse_complete(body));
  expect_usable(json::parse_fail(body));
  expect_usable(json::parse_extend(body));
  expect_usable(json::parse_release(body));
  expect_usable(json::parse_cancel_batch(body));
  expect_usable(json::parse_move_batch(body));
  expect_usable(json::parse_backfill(body));
  expect_usable(json::parse_nothing(body));
}

void read_answers(std::string_view body) {
  expect_usable(json::parse_accepted(body));
  expect_usable(json::parse_schedule_results(body));
  expect_usable(json::parse_task(body));
  expect_usable(json::parse_leased_tasks(body));
  expect_usable(json::parse_lease_results(body));
  expect_usable(json::parse_stats(body));
  expect_usable(json::parse_queue(body));
  expect_usable(json::parse_queues(body));
  expect_usable(json::parse_count(body));
  expect_usable(json::parse_schedule_view(body));
  expect_usable(json::parse_schedule_list(body));
  expect_usable(json::parse_next_occurrences(body));
  expect_usable(json::parse_backfill_counts(body));
}

}  // namespace

void json_bodies(std::string_view input) {
  agree_with_boost(input);
  read_requests(input);
  read_answers(input);
}

}  // namespace detent::fuzz
