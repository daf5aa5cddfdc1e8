#include "protocol/json/problem.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/json/json_reader.h"

namespace detent::json {
namespace {

TEST(Problem, EveryCodeHasItsStatus) {
  EXPECT_EQ(http_status(ErrorCode::invalid_argument), 400);
  EXPECT_EQ(http_status(ErrorCode::not_found), 404);
  EXPECT_EQ(http_status(ErrorCode::conflict), 409);
  EXPECT_EQ(http_status(ErrorCode::too_large), 413);
  EXPECT_EQ(http_status(ErrorCode::resource_exhausted), 429);
  EXPECT_EQ(http_status(ErrorCode::unavailable), 503);
  EXPECT_EQ(http_status(ErrorCode::data_loss), 500);
  EXPECT_EQ(http_status(ErrorCode::internal), 500);
}

TEST(Problem, HasTheDetailAndTheField) {
  EXPECT_EQ(render_problem({ErrorCode::invalid_argument, "say \"when\"", "due_at"}),
            R"({"type":"urn:detent:error:invalid_argument","title":"The request is wrong",)"
            R"("status":400,"detail":"say \"when\"","field":"due_at"})");
  EXPECT_EQ(
      render_http_problem(405, "use GET"),
      R"({"type":"about:blank","title":"Method Not Allowed","status":405,"detail":"use GET"})");
}

TEST(Problem, EveryErrorComesBackAsItWas) {
  for (const ErrorCode code :
       {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::conflict,
        ErrorCode::too_large, ErrorCode::resource_exhausted, ErrorCode::unavailable,
        ErrorCode::data_loss, ErrorCode::internal}) {
    for (const char* field : {"", "backoff.initial"}) {
      const Error error{code, "line\n\"quoted\" \xC3\xA9", field};
      EXPECT_EQ(parse_problem(http_status(code), render_problem(error)), error);
    }
  }
}

TEST(Problem, TheStatusDecidesIfTheBodyIsNotAProblem) {
  for (const char* body : {"", "<html>", "[]", "{}", R"({"type":5,"detail":[]})"}) {
    EXPECT_EQ(parse_problem(503, body).code, ErrorCode::unavailable);
    EXPECT_EQ(parse_problem(404, body).message, "the server answered 404");
    EXPECT_EQ(parse_problem(502, body).code, ErrorCode::unavailable);
    EXPECT_EQ(parse_problem(418, body).code, ErrorCode::invalid_argument);
    EXPECT_EQ(parse_problem(500, body).code, ErrorCode::internal);
  }
  EXPECT_EQ(parse_problem(405, render_http_problem(405, "use GET")),
            (Error{ErrorCode::invalid_argument, "use GET", ""}));
}

Error read_inside(std::string_view problem) {
  JsonDocument document;
  return parse_problem(*document.read(problem).value());
}

TEST(Problem, AProblemInsideAnAnswerUsesItsOwnStatus) {
  EXPECT_EQ(read_inside(render_http_problem(503, "the shard is not open here")),
            (Error{ErrorCode::unavailable, "the shard is not open here", ""}));
  EXPECT_EQ(read_inside(R"({"status":504})").code, ErrorCode::unavailable);
  EXPECT_EQ(read_inside(R"({"type":"urn:detent:error:data_loss","status":503})").code,
            ErrorCode::data_loss);
  for (const char* body :
       {"[]", "{}", R"({"status":"503"})", R"({"status":-1})", R"({"status":4294967799})"}) {
    EXPECT_EQ(read_inside(body).code, ErrorCode::internal) << body;
  }
}

}  // namespace
}  // namespace detent::json
