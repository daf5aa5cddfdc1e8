#include "external/redis_session.h"

#include <utility>
#include <vector>

#include "detent/check.h"
#include "task/task.h"

namespace detent {

namespace {

// The keys, in the order of KEYS:
//   due         sorted set: id → due time, of the tasks that are not claimed
//   records     hash: id → due time and record, of all tasks
//   claims      sorted set: id → end of the claim
//   owner       the number of the session that may change the tasks
//   damaged     hash: id → due time and record of tasks that could not be read, for the operator
//   folder      the identity of the data folder that owns the tasks
//   generation  the number that was stamped last
// Ids and due times are decimal numbers with 16 digits, so that ids sort as numbers. Times are
// milliseconds since 1970, which the doubles in sorted sets store exactly. ARGV[1] is the number of
// the session.
constexpr std::array<std::string_view, 7> kKeys{"due",     "records", "claims",      "owner",
                                                "damaged", "folder",  kGenerationKey};

/// ARGV[1] is the identity of the data folder here. Returns the number of the new session, or nil
/// if tasks of another folder are there. If somebody has removed the key `folder`, the tasks belong
/// to the first server that connects (docs/guides/external-scheduler.md).
constexpr std::string_view kTakeOver = R"lua(
local records, owner, folder = KEYS[2], KEYS[4], KEYS[6]
local there = redis.call('GET', folder)
if there and there ~= ARGV[1] and redis.call('EXISTS', records) == 1 then return false end
redis.call('SET', folder, ARGV[1])
return redis.call('INCR', owner)
)lua";

constexpr std::string_view kHead = R"lua(
local due, records, claims = KEYS[1], KEYS[2], KEYS[3]
if redis.call('GET', KEYS[4]) ~= ARGV[1] then
  return redis.error_reply('STALE another session has taken over')
end
)lua";

/// Arguments: id, due time and record of each task.
constexpr std::string_view kPut = R"lua(
for i = 2, #ARGV, 3 do
  redis.call('HSET', records, ARGV[i], ARGV[i + 1] .. ARGV[i + 2])
  redis.call('ZADD', due, ARGV[i + 1], ARGV[i])
  redis.call('ZREM', claims, ARGV[i])
end
return 0
)lua";

/// Argument: an id. Returns 0: cancelled, 1: claimed, 2: not there.
constexpr std::string_view kCancel = R"lua(
if redis.call('HEXISTS', records, ARGV[2]) == 0 then return 2 end
if redis.call('ZSCORE', claims, ARGV[2]) then return 1 end
redis.call('HDEL', records, ARGV[2])
redis.call('ZREM', due, ARGV[2])
return 0
)lua";

/// Argument: an id. Returns the due time and the record as one text.
constexpr std::string_view kFind = R"lua(
return redis.call('HGET', records, ARGV[2])
)lua";

/// Arguments: now, until, limit, end of the new claims. Returns a list: id, due time with record,
/// and so on.
constexpr std::string_view kTake = R"lua(
local now, latest, limit, claimed_until = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local function unclaim(from, to)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', claims, from, to, 'LIMIT', 0, limit)) do
    local value = redis.call('HGET', records, id)
    if value then
      redis.call('ZADD', due, string.match(string.sub(value, 1, 16), '^%d+$') or '0', id)
    end
    redis.call('ZREM', claims, id)
  end
end
unclaim('-inf', now)
unclaim('(' .. claimed_until, '+inf')
local taken = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', latest, 'LIMIT', 0, limit)) do
  redis.call('ZREM', due, id)
  local value = redis.call('HGET', records, id)
  if value then
    redis.call('ZADD', claims, claimed_until, id)
    taken[#taken + 1] = id
    taken[#taken + 1] = value
  end
end
return taken
)lua";

/// Arguments: ids.
constexpr std::string_view kForget = R"lua(
for i = 2, #ARGV do
  redis.call('HDEL', records, ARGV[i])
  redis.call('ZREM', due, ARGV[i])
  redis.call('ZREM', claims, ARGV[i])
end
return 0
)lua";

/// Arguments: ids.
constexpr std::string_view kSetAside = R"lua(
for i = 2, #ARGV do
  local value = redis.call('HGET', records, ARGV[i])
  if value then redis.call('HSET', KEYS[5], ARGV[i], value) end
  redis.call('HDEL', records, ARGV[i])
  redis.call('ZREM', due, ARGV[i])
  redis.call('ZREM', claims, ARGV[i])
end
return 0
)lua";

constexpr std::string_view kSize = R"lua(
return redis.call('HLEN', records)
)lua";

/// Arguments: the generation that must be there, and the next one.
constexpr std::string_view kStamp = R"lua(
if (tonumber(redis.call('GET', KEYS[7]) or '') or 0) ~= tonumber(ARGV[2]) then
  return redis.error_reply('LOST its generation is no longer ' .. ARGV[2])
end
redis.call('SET', KEYS[7], ARGV[3])
return 0
)lua";

/// Returns the generation.
constexpr std::string_view kGeneration = R"lua(
return redis.call('GET', KEYS[7])
)lua";

/// In the order of RedisScript.
constexpr std::array<std::string_view, kRedisScripts> kScripts{
    kPut, kCancel, kFind, kTake, kForget, kSetAside, kSize, kStamp, kGeneration};

/// Translates an error reply of Redis. Its first word decides which error code the caller gets.
Error to_error(const std::string& text) {
  const auto is = [&text](std::string_view word) { return text.starts_with(word); };
  ErrorCode code = ErrorCode::unavailable;  // LOADING, MISCONF, READONLY, …
  std::string advice;
  if (is("OOM")) {
    code = ErrorCode::resource_exhausted;
    advice = " (raise its maxmemory)";
  } else if (is("NOAUTH") || is("WRONGPASS") || is("NOPERM") || is("ERR AUTH")) {
    code = ErrorCode::invalid_argument;
    advice = " (give the user and the password of a Redis user that may run scripts)";
  } else if (is("STALE")) {
    advice = " (give each server its own name: ?name=NAME in --external)";
  }
  return {code, text + advice, ""};
}

Error not_durable(std::string_view name, const std::string& value, std::string_view wanted) {
  return {ErrorCode::invalid_argument,
          "it may lose tasks that it has accepted: " + std::string(name) + " is '" + value +
              "'; set it to '" + std::string(wanted) + "'",
          std::string(name)};
}

Error of_another_folder(const RedisOptions& options) {
  return {ErrorCode::invalid_argument,
          "the tasks under the name '" + options.name +
              "' are of another data folder; give this server its own name in --external "
              "(?name=NAME), or give up those tasks: " +
              options.command() + "DEL '" + options.key("records") + "' '" + options.key("due") +
              "' '" + options.key("claims") + "'",
          "name"};
}

/// Quotes a text as one word of a shell command.
std::string quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string RedisOptions::command() const {
  std::string text = "redis-cli ";
  if (const Result<RedisAddress> at = parse_redis_address(address); at && at->host.empty()) {
    text += "-s " + quoted(at->socket_path) + " ";
  } else if (at) {
    text += "-h " + at->host + " -p " + std::to_string(at->port) + " ";
  }
  if (!user.empty()) text += "--user " + quoted(user) + " ";
  if (!password.empty()) text += "--askpass ";
  if (database != 0) text += "-n " + std::to_string(database) + " ";
  return text;
}

RedisSession::RedisSession(std::unique_ptr<RedisConnection> connection, const RedisOptions& options)
    : connection_(std::move(connection)) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    keys_[i] = options.key(kKeys[i]);
  }
}

Result<std::unique_ptr<RedisSession>> RedisSession::open(const RedisOptions& options) {
  ASSIGN_OR_RETURN(const RedisAddress address, parse_redis_address(options.address));
  ASSIGN_OR_RETURN(auto connection, RedisConnection::open(address, options.timeouts));
  std::unique_ptr<RedisSession> session(new RedisSession(std::move(connection), options));
  TRY(session->log_in(options));
  if (options.durability == RedisDurability::required) TRY(session->check_durability());
  TRY(session->load_scripts());
  TRY(session->take_over(options));
  return session;
}

Result<void> RedisSession::log_in(const RedisOptions& options) {
  if (!options.password.empty()) {
    std::vector<std::string_view> command{"AUTH"};
    if (!options.user.empty()) command.emplace_back(options.user);
    command.emplace_back(options.password);
    TRY(call(command));
  }
  if (options.database == 0) return ok();
  const std::string database = std::to_string(options.database);
  TRY(call(std::array<std::string_view, 2>{"SELECT", database}));
  return ok();
}

Result<void> RedisSession::check_durability() {
  ASSIGN_OR_RETURN(const std::string log, setting("appendonly"));
  if (log != "yes") return not_durable("appendonly", log, "yes");
  ASSIGN_OR_RETURN(const std::string sync, setting("appendfsync"));
  if (sync != "always") return not_durable("appendfsync", sync, "always");
  ASSIGN_OR_RETURN(const std::string policy, setting("maxmemory-policy"));
  // The volatile policies evict only keys with a time to live, and our keys have none.
  if (policy.starts_with("allkeys")) return not_durable("maxmemory-policy", policy, "noeviction");
  return ok();
}

Result<std::string> RedisSession::setting(std::string_view name) {
  TRY(connection_->send(std::array<std::string_view, 3>{"CONFIG", "GET", name}));
  ASSIGN_OR_RETURN(RedisReply reply, connection_->receive());
  if (reply.elements.size() == 2) return std::move(reply.elements[1].text);
  const bool is_refused = reply.text.starts_with("ERR") || reply.text.starts_with("NOPERM");
  if (reply.kind == RedisReply::Kind::error && !is_refused) return to_error(reply.text);
  return Error{
      ErrorCode::invalid_argument,
      "it refuses CONFIG GET, so its settings cannot be checked and it may lose tasks; allow "
      "this command for the Redis user",
      std::string(name)};
}

Result<void> RedisSession::load_scripts() {
  for (const std::string_view script : kScripts) {
    const std::string text = std::string(kHead).append(script);
    TRY(connection_->send(std::array<std::string_view, 3>{"SCRIPT", "LOAD", text}));
  }
  for (std::string& sha1 : sha1_) {
    ASSIGN_OR_RETURN(RedisReply reply, receive());
    sha1 = std::move(reply.text);
  }
  return ok();
}

Result<void> RedisSession::take_over(const RedisOptions& options) {
  const std::string key_count = std::to_string(keys_.size());
  std::vector<std::string_view> command{"EVAL", kTakeOver, key_count};
  command.insert(command.end(), keys_.begin(), keys_.end());
  command.emplace_back(options.folder);
  ASSIGN_OR_RETURN(const RedisReply reply, call(command));
  if (reply.kind == RedisReply::Kind::nil) return of_another_folder(options);
  owner_ = std::to_string(reply.integer);
  return ok();
}

Result<RedisReply> RedisSession::call(std::span<const std::string_view> command) {
  TRY(connection_->send(command));
  return receive();
}

Result<void> RedisSession::send(RedisScript script, std::span<const std::string> arguments) {
  std::vector<std::string_view> command{"EVALSHA", sha1_[static_cast<std::size_t>(script)]};
  const std::string key_count = std::to_string(keys_.size());
  command.emplace_back(key_count);
  command.insert(command.end(), keys_.begin(), keys_.end());
  command.emplace_back(owner_);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return connection_->send(command);
}

Result<RedisReply> RedisSession::receive() {
  ASSIGN_OR_RETURN(RedisReply reply, connection_->receive());
  if (reply.kind != RedisReply::Kind::error) return reply;
  if (reply.text.starts_with("NOSCRIPT")) has_lost_scripts_ = true;
  return to_error(reply.text);
}

}  // namespace detent
