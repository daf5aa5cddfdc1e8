// A table of accepted and refused requests, split at every byte, and random changes.
#include "net/message/http_parser.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::net {
namespace {

using namespace std::string_literals;

constexpr ParseLimits kLimits{.max_header_bytes = 1024, .max_body_bytes = 4096};

/// The result of parsing one message.
struct Outcome {
  ParseState state = ParseState::header;
  int status = 0;
  std::string detail;
  HttpRequest request;
  std::string rest;  // the bytes that were not taken
};

/// Parses `bytes` in pieces that end at `cuts`, as they would arrive on a connection.
Outcome parse_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  RequestParser parser(kLimits);
  Outcome outcome;
  std::size_t begin = 0;
  for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
    const std::size_t end = piece < cuts.size() ? cuts[piece] : bytes.size();
    outcome.rest.append(bytes.substr(begin, end - begin));
    begin = end;
    if (parser.state() != ParseState::header && parser.state() != ParseState::body) continue;
    outcome.rest.erase(0, parser.parse(outcome.rest));
  }
  outcome.state = parser.state();
  outcome.status = parser.failure().status;
  outcome.detail = parser.failure().detail;
  if (outcome.state == ParseState::complete) outcome.request = parser.take();
  return outcome;
}

Outcome parse_whole(std::string_view bytes) { return parse_pieces(bytes, {}); }

struct RefusedCase {
  const char* name;
  std::string bytes;
  int status = 400;
};

/// Requests whose body could end at different places.
std::vector<RefusedCase> bad_lengths() {
  return {
      {"length and coding",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"coding and length",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
       "Content-Length: 4\r\n\r\n0\r\n\r\n"},
      {"two lengths",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
       "Content-Length: 5\r\n\r\nabcde"},
      {"the same length twice",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
       "Content-Length: 4\r\n\r\nabcd"},
      {"list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n\r\nabcd"},
      {"signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd"},
      {"negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\nabcd"},
      {"hex length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n\r\nabcd"},
      {"empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\nabcd"},
      {"length beyond 64 bits",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\na"},
      {"other coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabcd"},
      {"coding after chunked",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"},
      {"coding before chunked",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"chunked twice",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"disguised coding",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"coding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
  };
}

/// Lines that different parsers read differently.
std::vector<RefusedCase> bad_headers() {
  return {
      {"folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"},
      {"folded with tab", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n"},
      {"folded first line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"folded empty line", "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n"},
      {"line feed alone", "GET / HTTP/1.1\nHost: a\n\n"},
      {"one line feed alone", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"carriage return alone", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {"space before colon", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\n"},
      {"no colon", "GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n"},
      {"empty header name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
      {"bad header name", "GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n"},
      {"zero byte in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s},
      {"no Host", "GET / HTTP/1.1\r\n\r\n"},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
  };
}

/// Wrong methods, targets and versions.
std::vector<RefusedCase> bad_start_lines() {
  return {
      {"no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"bad method", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"relative target", "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"authority target", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"absolute target without host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"other scheme", "GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tab for space", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"raw byte in target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no version", "GET /\r\nHost: a\r\n\r\n"},
      {"version 2", "PRI * HTTP/2.0\r\n\r\n"},
      {"version 1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
      {"version 0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n"},
      {"lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
      {"space after version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {"empty line, line feed alone", "\r\n\nGET /"},
      {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
  };
}

/// Chunks that do not match their headers.
std::vector<RefusedCase> bad_chunks() {
  return {
      {"bad chunk size",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "zz\r\nabcd\r\n0\r\n\r\n"},
      {"negative chunk size",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "-1\r\nabcd\r\n0\r\n\r\n"},
      {"chunk size beyond 64 bits",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "10000000000000001\r\na\r\n0\r\n\r\n"},
      {"chunk longer than said",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "2\r\nabcd\r\n0\r\n\r\n"},
      {"bad trailer",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\nno colon\r\n\r\n"},
  };
}

/// Requests above a limit of kLimits.
std::vector<RefusedCase> too_large() {
  return {
      {"long body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n", 413},
      {"huge body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n",
       413},
      {"long chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n",
       413},
      {"huge chunk",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "ffffffffffffffff\r\n",
       413},
      {"chunks too long together",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
           std::string(0x800, 'x') + "\r\n801\r\n",
       413},
      {"long header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1024, 'x') + "\r\n\r\n",
       431},
      {"header without end", "GET /" + std::string(1024, 'x'), 431},
      {"chunk header without end",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
           std::string(1100, 'x'),
       431},
      {"trailers without end",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " +
           std::string(1100, 'x'),
       431},
  };
}

const std::vector<RefusedCase>& refused_cases() {
  static const std::vector<RefusedCase> cases = [] {
    std::vector<RefusedCase> all;
    for (const auto& table :
         {bad_lengths(), bad_headers(), bad_start_lines(), bad_chunks(), too_large()}) {
      all.insert(all.end(), table.begin(), table.end());
    }
    return all;
  }();
  return cases;
}

struct AcceptedCase {
  const char* name;
  std::string bytes;
  std::string method;
  std::string target;
  std::string body;
};

const std::vector<AcceptedCase>& accepted_cases() {
  static const std::vector<AcceptedCase> cases{
      {"plain", "GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/a?b=c", ""},
      {"1.0 without Host", "GET / HTTP/1.0\r\n\r\n", "GET", "/", ""},
      {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET", "/", ""},
      {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", ""},
      {"unknown method", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "BREW", "/", ""},
      {"whole server", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS", "*", ""},
      {"absolute target", "GET http://a:1/b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/b?c", ""},
      {"absolute, no path", "GET HTTP://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", ""},
      {"absolute, query only", "GET http://a?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/?c", ""},
      {"length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd", "POST", "/",
       "abcd"},
      {"length 0", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POST", "/", ""},
      {"leading zeros", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0004\r\n\r\nabcd", "POST",
       "/", "abcd"},
      {"largest body",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4096\r\n\r\n" + std::string(4096, 'x'),
       "POST", "/", std::string(4096, 'x')},
      {"chunks",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "4\r\nabcd\r\nA\r\n0123456789\r\n0\r\n\r\n",
       "POST", "/", "abcd0123456789"},
      {"chunk extension, trailers",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
       "4;a=b\r\nabcd\r\n0\r\nContent-MD5: x\r\nHost: b\r\n\r\n",
       "POST", "/", "abcd"},
      {"no chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "POST", "/", ""},
      {"a request as body",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n"
       "GET / HTTP/1.1\r\n\r\n",
       "POST", "/", "GET / HTTP/1.1\r\n\r\n"},
  };
  return cases;
}

TEST(RequestParser, RefusesAmbiguousRequests) {
  for (const RefusedCase& refused : refused_cases()) {
    SCOPED_TRACE(refused.name);
    const Outcome outcome = parse_whole(refused.bytes);
    EXPECT_EQ(outcome.state, ParseState::failed);
    EXPECT_EQ(outcome.status, refused.status);
    EXPECT_FALSE(outcome.detail.empty());
  }
}

TEST(RequestParser, AcceptsRequestsAndTakesNoFurtherByte) {
  for (const AcceptedCase& accepted : accepted_cases()) {
    SCOPED_TRACE(accepted.name);
    const Outcome outcome = parse_whole(accepted.bytes + "GET /next");
    ASSERT_EQ(outcome.state, ParseState::complete) << outcome.detail;
    EXPECT_EQ(outcome.request.method, accepted.method);
    EXPECT_EQ(outcome.request.target, accepted.target);
    EXPECT_EQ(outcome.request.body, accepted.body);
    EXPECT_EQ(outcome.rest, "GET /next");
  }
}

// The result must not depend on how the network splits the bytes.
TEST(RequestParser, TheResultDoesNotDependOnHowTheBytesAreSplit) {
  std::vector<std::string> all;
  for (const AcceptedCase& accepted : accepted_cases()) all.push_back(accepted.bytes);
  for (const RefusedCase& refused : refused_cases()) all.push_back(refused.bytes);
  for (const std::string& bytes : all) {
    SCOPED_TRACE(bytes.substr(0, 200));
    const Outcome whole = parse_whole(bytes);
    std::vector<std::size_t> every_byte;
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      every_byte.push_back(cut);
      const Outcome two = parse_pieces(bytes, {cut});
      ASSERT_EQ(two.state, whole.state) << "cut at " << cut;
      ASSERT_EQ(two.status, whole.status) << "cut at " << cut;
      ASSERT_EQ(two.request.body, whole.request.body) << "cut at " << cut;
    }
    const Outcome bytewise = parse_pieces(bytes, every_byte);
    ASSERT_EQ(bytewise.state, whole.state);
    ASSERT_EQ(bytewise.status, whole.status);
    ASSERT_EQ(bytewise.request.target, whole.request.target);
    ASSERT_EQ(bytewise.request.body, whole.request.body);
  }
}

// Random bytes are changed, and the result is split at random. The parser must respect its limits,
// take no byte twice, and give the same result as for the whole.
TEST(RequestParser, SurvivesMutations) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr std::string_view kSpecial = "\r\n :;,0Ff\t*";
  for (int round = 0; round < 20'000; ++round) {
    const auto index = rng.below(static_cast<std::uint32_t>(accepted_cases().size()));
    std::string bytes = accepted_cases()[index].bytes.substr(0, 600);
    for (std::uint32_t changes = 1 + rng.below(4); changes > 0; --changes) {
      const std::size_t at = rng.below(static_cast<std::uint32_t>(bytes.size()));
      const char special = kSpecial[rng.below(kSpecial.size())];
      switch (rng.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          bytes[at] = special;
          break;
        case 2:
          bytes.insert(at, 1, special);
          break;
        default:
          bytes.erase(at, 1 + rng.below(3));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    const Outcome whole = parse_whole(bytes);
    const auto cut = rng.below(static_cast<std::uint32_t>(bytes.size()));
    const Outcome two = parse_pieces(bytes, {cut});
    ASSERT_LE(whole.rest.size(), bytes.size());
    ASSERT_LE(whole.request.body.size(), kLimits.max_body_bytes);
    ASSERT_EQ(two.state, whole.state) << bytes << "\ncut at " << cut;
    ASSERT_EQ(two.request.target, whole.request.target) << bytes;
    ASSERT_EQ(two.request.body, whole.request.body) << bytes;
  }
}

TEST(RequestParser, LowersHeaderNamesAndKeepsValuesAndOrder) {
  const Outcome outcome = parse_whole(
      "GET / HTTP/1.1\r\nHOST: Example\r\nX-One:  a b \t\r\nx-two:\r\nX-ONE: c\r\n\r\n");
  ASSERT_EQ(outcome.state, ParseState::complete);
  const HttpHeaders expected{{"host", "Example"}, {"x-one", "a b"}, {"x-two", ""}, {"x-one", "c"}};
  EXPECT_EQ(outcome.request.headers, expected);
  EXPECT_EQ(outcome.request.header("x-one"), "a b");
  EXPECT_EQ(outcome.request.header("absent"), "");
}

TEST(RequestParser, DropsTrailers) {
  const Outcome outcome = parse_whole(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Late: b\r\n\r\n");
  ASSERT_EQ(outcome.state, ParseState::complete);
  EXPECT_EQ(outcome.request.header("x-late"), "");
}

TEST(RequestParser, KnowsWhetherTheConnectionIsKept) {
  const auto keeps_alive = [](std::string_view bytes) {
    RequestParser parser(kLimits);
    parser.parse(bytes);
    return parser.keeps_alive();
  };
  EXPECT_TRUE(keeps_alive("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestParser, ReadsOneRequestAfterTheOther) {
  RequestParser parser(kLimits);
  std::string input =
      "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
      "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
  input.erase(0, parser.parse(input));
  ASSERT_EQ(parser.state(), ParseState::complete);
  EXPECT_EQ(parser.take().body, "ab");
  input.erase(0, parser.parse(input));
  ASSERT_EQ(parser.state(), ParseState::complete);
  EXPECT_EQ(parser.take().target, "/2");
  EXPECT_EQ(input, "");
}

TEST(ResponseParser, SkipsInterimResponses) {
  ResponseParser parser(kLimits);
  const std::string_view bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
      "Content-Length: 2\r\nX-A: b\r\n\r\nok";
  EXPECT_EQ(parser.parse(bytes), bytes.size());
  ASSERT_EQ(parser.state(), ParseState::complete);
  EXPECT_TRUE(parser.keeps_alive());
  const HttpResponse response = parser.take();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain");
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(response.header("x-a"), "b");
}

TEST(ResponseParser, ExpectsNoBodyForHead) {
  ResponseParser parser(kLimits);
  parser.expect_answer_to("HEAD");
  parser.parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(parser.state(), ParseState::complete);
}

TEST(ResponseParser, TakesTheEndOfTheConnectionAsEndOfBody) {
  ResponseParser parser(kLimits);
  parser.parse("HTTP/1.1 200 OK\r\n\r\nall of it");
  ASSERT_EQ(parser.state(), ParseState::body);
  parser.parse_end();
  ASSERT_EQ(parser.state(), ParseState::complete);
  EXPECT_FALSE(parser.keeps_alive());
  EXPECT_EQ(parser.take().body, "all of it");
}

TEST(ResponseParser, FailsIfTheConnectionEndsInsideAResponse) {
  for (const std::string_view bytes :
       {"HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    ResponseParser parser(kLimits);
    parser.parse(bytes);
    parser.parse_end();
    EXPECT_EQ(parser.state(), ParseState::failed) << bytes;
  }
}

TEST(ResponseParser, RefusesTooLongABody) {
  ResponseParser parser(kLimits);
  parser.parse("HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'x'));
  EXPECT_EQ(parser.state(), ParseState::failed);
  EXPECT_EQ(parser.failure().status, 413);
}

TEST(ResponseParser, ReturnsAnIncompleteBody) {
  ResponseParser parser(kLimits);
  const std::string bytes = "HTTP/1.1 500 x\r\nContent-Length: 10\r\nX-A: b\r\n\r\nabc";
  EXPECT_EQ(parser.parse(bytes), bytes.size());
  ASSERT_EQ(parser.state(), ParseState::body);
  EXPECT_EQ(parser.body_size(), 3u);
  const HttpResponse response = parser.take_part();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, "abc");
  EXPECT_EQ(response.header("x-a"), "b");
}

}  // namespace
}  // namespace detent::net
