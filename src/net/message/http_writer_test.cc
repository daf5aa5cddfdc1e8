#include "net/message/http_writer.h"

#include <gtest/gtest.h>

namespace detent::net {
namespace {

using namespace std::chrono_literals;

TEST(HttpDate, HasTheFormatOfTheStandard) {
  HttpDate date;
  // The example in RFC 9110, section 5.6.7.
  EXPECT_EQ(date.at(WallInstant{784'111'777s}), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.at(WallInstant{784'111'777s + 999ms}), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.at(WallInstant{784'111'778s}), "Sun, 06 Nov 1994 08:49:38 GMT");
  EXPECT_EQ(date.at(WallInstant{1'709'251'199s}), "Thu, 29 Feb 2024 23:59:59 GMT");
}

std::string response_head(const HttpResponse& response, Persistence persistence) {
  std::string out;
  write_response_head(response, {.persistence = persistence}, "DATE", out);
  return out;
}

TEST(WriteResponse, NamesTypeLengthAndHeaders) {
  const HttpResponse response{.status = 201, .body = "{}", .headers = {{"Retry-After", "1"}}};
  EXPECT_EQ(response_head(response, Persistence::keep),
            "HTTP/1.1 201 Created\r\nDate: DATE\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\nRetry-After: 1\r\n\r\n");
}

TEST(WriteResponse, SaysWhetherTheConnectionIsKept) {
  const HttpResponse response{.content_type = ""};
  EXPECT_EQ(response_head(response, Persistence::close),
            "HTTP/1.1 200 OK\r\nDate: DATE\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(response_head(response, Persistence::keep_announced),
            "HTTP/1.1 200 OK\r\nDate: DATE\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
}

TEST(WriteResponse, SaysHowTheEndOfTheBodyIsFound) {
  const HttpResponse response{.content_type = "", .body = "not counted"};
  std::string chunked;
  write_response_head(response, {.body_end = BodyEnd::by_chunk}, "DATE", chunked);
  EXPECT_EQ(chunked, "HTTP/1.1 200 OK\r\nDate: DATE\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string closed;
  write_response_head(response, {.persistence = Persistence::close, .body_end = BodyEnd::by_close},
                      "DATE", closed);
  EXPECT_EQ(closed, "HTTP/1.1 200 OK\r\nDate: DATE\r\nConnection: close\r\n\r\n");
}

TEST(WriteChunk, FramesAPartAndTheLast) {
  const auto chunk = [](ChunkPlace place, std::string body) {
    std::string head;
    write_chunk(place, head, body);
    return head + body;
  };
  EXPECT_EQ(chunk(ChunkPlace::more_follow, std::string(31, 'x')),
            "1f\r\n" + std::string(31, 'x') + "\r\n");
  EXPECT_EQ(chunk(ChunkPlace::last, "ab"), "2\r\nab\r\n0\r\n\r\n");
  EXPECT_EQ(chunk(ChunkPlace::last, ""), "0\r\n\r\n");
  EXPECT_EQ(chunk(ChunkPlace::more_follow, ""), "");
}

TEST(WriteResponse, GivesNoLengthWhereThereIsNoBody) {
  const HttpResponse response{.status = 204, .content_type = ""};
  EXPECT_EQ(response_head(response, Persistence::keep),
            "HTTP/1.1 204 No Content\r\nDate: DATE\r\n\r\n");
}

TEST(WriteResponse, ReplacesLineBreaksInHeaders) {
  const HttpResponse response{.content_type = "a\r\nX: 1",
                              .headers = {{"Location\r\nY", "/a\r\n\r\nbody"}}};
  EXPECT_EQ(response_head(response, Persistence::keep),
            "HTTP/1.1 200 OK\r\nDate: DATE\r\nContent-Type: a  X: 1\r\nContent-Length: 0\r\n"
            "Location  Y: /a    body\r\n\r\n");
}

TEST(WriteRequest, MakesHostAndLengthItself) {
  const HttpRequest request{.method = "POST",
                            .target = "/v1/tasks",
                            .headers = {{"host", "evil"},
                                        {"content-length", "9"},
                                        {"Transfer-Encoding", "chunked"},
                                        {"authorization", "Bearer x"}},
                            .body = "abc"};
  std::string out;
  write_request(request, "127.0.0.1:7070", out);
  EXPECT_EQ(out,
            "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nContent-Length: 3\r\n"
            "authorization: Bearer x\r\n\r\nabc");
}

TEST(WriteRequest, GivesNoLengthForGet) {
  std::string out;
  write_request({.method = "GET", .target = "/", .headers = {}, .body = ""}, "a:1", out);
  EXPECT_EQ(out, "GET / HTTP/1.1\r\nHost: a:1\r\n\r\n");
}

}  // namespace
}  // namespace detent::net
