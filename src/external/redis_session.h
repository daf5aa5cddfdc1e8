// A connection to Redis that is logged in, has our scripts loaded and owns our keys.
//
// Whoever opens a session increments the number under the key `owner`, and every script first
// compares that number with the session's. So a command of an earlier session that is still on its
// way (its server gave up waiting, or another took over) does nothing: a fencing token, as in
// Kleppmann's "How to do distributed locking" (2016).
//
// Under the key `folder` stands whose tasks they are. In the same step in which a session takes
// over it looks there, and is refused as long as tasks of another data folder lie there: their ids
// mean something else, and each would take the other's for its own.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "redis/redis_connection.h"

namespace detent {

/// Whether Redis is asked, each time we connect, if it is set up so that it keeps what it accepted:
/// `appendonly yes`, `appendfsync always` and a `maxmemory-policy` that drops none of our keys.
enum class RedisDurability : std::uint8_t { required, assumed };

/// Ends the name of the key that a stamp is under.
inline constexpr std::string_view kGenerationKey = "generation";

struct RedisOptions {
  std::string address = "127.0.0.1:6379";  // HOST:PORT, [V6]:PORT or /path/of/socket
  std::string user;                        // may be empty: the default user
  std::string password;                    // empty: no log-in
  std::uint32_t database = 0;
  /// Names the tasks: all keys begin with "{detent:NAME}:". A queue's name; one data folder a name.
  std::string name = "default";
  /// For people: how a command to this database begins. It asks for the password.
  std::string command() const;
  std::string key(std::string_view of) const { return "{detent:" + name + "}:" + std::string(of); }
  std::string folder = {};  // Store::identity() of that data folder
  RedisDurability durability = RedisDurability::required;
  RedisConnection::Timeouts timeouts = {};
};

enum class RedisScript : std::uint8_t {
  put,
  cancel,
  find,
  take,
  forget,
  set_aside,
  size,
  stamp,
  generation
};
inline constexpr std::size_t kRedisScripts = 9;

/// Thread-compatible. After an error it is of no more use. Redis runs the scripts one at a time, so
/// each is atomic; what they are given and answer is told in redis_session.cc.
class RedisSession {
 public:
  /// Connects, logs in, checks and takes over. Errors: as those of an ExternalScheduler; also
  /// invalid_argument where tasks of another data folder lie.
  static Result<std::unique_ptr<RedisSession>> open(const RedisOptions& options);

  /// Puts a call of a script on its way; its reply comes in its turn.
  Result<void> send(RedisScript script, std::span<const std::string> arguments);
  /// The next reply. An error that Redis answers is an error here.
  Result<RedisReply> receive();

  bool is_open() const noexcept { return connection_->is_open(); }
  /// Redis has dropped the scripts (SCRIPT FLUSH), so calls of them did nothing; a new session
  /// loads them.
  bool has_lost_scripts() const noexcept { return has_lost_scripts_; }

 private:
  RedisSession(std::unique_ptr<RedisConnection> connection, const RedisOptions& options);
  Result<RedisReply> call(std::span<const std::string_view> command);
  Result<void> log_in(const RedisOptions& options);
  Result<void> check_durability();
  Result<std::string> setting(std::string_view name);
  Result<void> load_scripts();
  Result<void> take_over(const RedisOptions& options);

  std::unique_ptr<RedisConnection> connection_;
  std::array<std::string, 7> keys_;  // in the order of KEYS in the scripts
  std::array<std::string, kRedisScripts> sha1_;
  std::string owner_;
  bool has_lost_scripts_ = false;
};

}  // namespace detent
