// A connection to Redis that is logged in, has loaded the scripts and owns the keys of this server.
//
// Each new session increments the number under the key `owner`. Every script first compares this
// number with the number of its session. So a delayed command of an earlier session does nothing.
// Commands are delayed if their server stopped waiting for them, or if another server took over.
// The number is a fencing token, as in Kleppmann's "How to do distributed locking" (2016).
//
// The key `folder` has the identity of the data folder that owns the tasks. The script that takes
// over the ownership reads this key. It refuses the session while tasks of another data folder are
// there: their ids belong to other tasks, and the two servers would mix up their tasks.
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

/// `required`: each new session checks the settings of Redis. They must keep every accepted task:
/// `appendonly yes`, `appendfsync always`, and a `maxmemory-policy` that never evicts our keys.
enum class RedisDurability : std::uint8_t { required, assumed };

/// The last part of the name of the key that stores the generation.
inline constexpr std::string_view kGenerationKey = "generation";

struct RedisOptions {
  std::string address = "127.0.0.1:6379";  // HOST:PORT, [V6]:PORT or /path/of/socket
  std::string user;                        // empty: the default user
  std::string password;                    // empty: do not log in
  std::uint32_t database = 0;
  /// The namespace of the tasks: all keys begin with "{detent:NAME}:". It must be a valid queue
  /// name. Each data folder needs its own.
  std::string name = "default";
  /// The beginning of a redis-cli command to this database, for messages. It has no password in it;
  /// redis-cli asks for the password.
  std::string command() const;
  std::string key(std::string_view of) const { return "{detent:" + name + "}:" + std::string(of); }
  std::string folder = {};  // Store::identity() of the data folder
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

/// Thread-compatible. Do not use it after an error. Redis runs one script at a time, so each script
/// is atomic. redis_session.cc describes the arguments and replies of the scripts.
class RedisSession {
 public:
  /// Connects, logs in, checks the settings and takes over the keys. Errors: as ExternalScheduler;
  /// also invalid_argument, if tasks of another data folder are there.
  static Result<std::unique_ptr<RedisSession>> open(const RedisOptions& options);

  /// Sends a call of a script. The replies come in the order of the calls.
  Result<void> send(RedisScript script, std::span<const std::string> arguments);
  /// Waits for the next reply. An error reply of Redis becomes an Error.
  Result<RedisReply> receive();

  bool is_open() const noexcept { return connection_->is_open(); }
  /// True if Redis has dropped the scripts (SCRIPT FLUSH), so the call did nothing. A new session
  /// loads them again.
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
