// One connection to Redis: sends commands and receives replies. Only redis_connection.{h,cc}
// includes hiredis.
//
// hiredis connects and reads replies. This file writes the commands itself, because hiredis 0.14
// writes with write(2). If Redis has closed the connection, write(2) raises SIGPIPE, which ends the
// process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct redisContext;  // of hiredis

namespace detent {

/// The address of a Redis server: a socket in the file system, or a host and a port.
struct RedisAddress {
  std::string socket_path;  // empty: TCP
  std::string host;
  std::uint16_t port = 0;
};
/// Reads "/path/of/socket", "HOST:PORT" or "[V6]:PORT". Errors: invalid_argument.
Result<RedisAddress> parse_redis_address(std::string_view text);

struct RedisReply {
  enum class Kind : std::uint8_t { nil, integer, text, array, error };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text;  // for the kinds text and error
  std::vector<RedisReply> elements;
};

/// Thread-compatible. After an error, the connection cannot be used again. An error that Redis
/// answers is a reply, not an error of the connection.
class RedisConnection {
 public:
  struct Timeouts {
    std::chrono::milliseconds connect{5'000};  // without the lookup of the host name
    /// How long a command may wait without progress: Redis takes no byte and sends no byte.
    std::chrono::milliseconds command{5'000};
  };

  /// Errors: unavailable.
  static Result<std::unique_ptr<RedisConnection>> open(const RedisAddress& address,
                                                       Timeouts timeouts);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Adds a command to the unsent commands, and sends them when enough are collected. Errors:
  /// unavailable.
  Result<void> send(std::span<const std::string_view> command);
  /// Returns the reply to the oldest unanswered command; sends unsent commands first. Errors:
  /// unavailable; internal if the answer is not a Redis reply.
  Result<RedisReply> receive();
  /// False if Redis has closed the connection. Requires: no reply is outstanding.
  bool is_open() const noexcept;

 private:
  struct Free {
    void operator()(redisContext* context) const noexcept;
  };

  RedisConnection(std::unique_ptr<redisContext, Free> context, Timeouts timeouts) noexcept;
  Result<void> flush();
  Error lost(int error_number, std::string_view message) const;

  std::unique_ptr<redisContext, Free> context_;
  Timeouts timeouts_;
  std::string unsent_;
};

}  // namespace detent
