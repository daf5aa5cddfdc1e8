#include "redis/redis_connection.h"

#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "detent/check.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// Commands are sent once this many bytes are collected.
constexpr std::size_t kSendBytes = std::size_t{64} << 10;

timeval to_timeval(milliseconds time) {
  timeval value{};
  value.tv_sec = time.count() / 1000;
  value.tv_usec = (time.count() % 1000) * 1000;
  return value;
}

Error unavailable(std::string message) { return {ErrorCode::unavailable, std::move(message), ""}; }

/// The message does not show the address, because a wrong address may contain a password.
Error no_address() {
  return {ErrorCode::invalid_argument, "the address of Redis must be HOST:PORT or /path/of/socket",
          "address"};
}

/// Appends the header of a string or an array: its type and its length or count (RESP).
void append_header(std::string& out, char type, std::size_t value) {
  out += type;
  out += std::to_string(value);
  out += "\r\n";
}

RedisReply::Kind kind_of(int type) {
  switch (type) {
    case REDIS_REPLY_INTEGER:
      return RedisReply::Kind::integer;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      return RedisReply::Kind::text;
    case REDIS_REPLY_ARRAY:
      return RedisReply::Kind::array;
    case REDIS_REPLY_ERROR:
      return RedisReply::Kind::error;
    default:
      return RedisReply::Kind::nil;
  }
}

/// Replies nest only as deep as our scripts make them: two levels. hiredis refuses more than seven.
RedisReply to_reply(const redisReply& from) {  // NOLINT(misc-no-recursion): see above
  RedisReply reply{.kind = kind_of(from.type)};
  reply.integer = from.integer;
  if (from.str != nullptr) reply.text.assign(from.str, from.len);
  reply.elements.reserve(from.elements);
  for (std::size_t i = 0; i < from.elements; ++i)
    reply.elements.push_back(to_reply(*from.element[i]));
  return reply;
}

}  // namespace

Result<RedisAddress> parse_redis_address(std::string_view text) {
  RedisAddress address;
  if (text.starts_with('/')) {
    address.socket_path = text;
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return no_address();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return no_address();
  }
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc{} || after != end || address.port == 0 || host.empty()) {
    return no_address();
  }
  address.host = host;
  return address;
}

void RedisConnection::Free::operator()(redisContext* context) const noexcept { redisFree(context); }

RedisConnection::RedisConnection(std::unique_ptr<redisContext, Free> context,
                                 Timeouts timeouts) noexcept
    : context_(std::move(context)), timeouts_(timeouts) {}

RedisConnection::~RedisConnection() = default;

Result<std::unique_ptr<RedisConnection>> RedisConnection::open(const RedisAddress& address,
                                                               Timeouts timeouts) {
  const timeval timeout = to_timeval(timeouts.connect);
  std::unique_ptr<redisContext, Free> context(
      address.socket_path.empty()
          ? redisConnectWithTimeout(address.host.c_str(), address.port, timeout)
          : redisConnectUnixWithTimeout(address.socket_path.c_str(), timeout));
  DETENT_CHECK(context != nullptr);  // out of memory
  if (context->err != 0) {
    return unavailable("cannot connect: " + std::string(context->errstr) +
                       " (check that Redis is running, and that the address is correct)");
  }
  if (redisSetTimeout(context.get(), to_timeval(timeouts.command)) != REDIS_OK) {
    return unavailable("cannot set the timeout: " + std::string(context->errstr));
  }
  return std::unique_ptr<RedisConnection>(new RedisConnection(std::move(context), timeouts));
}

Result<void> RedisConnection::send(std::span<const std::string_view> command) {
  append_header(unsent_, '*', command.size());
  for (const std::string_view argument : command) {
    append_header(unsent_, '$', argument.size());
    unsent_ += argument;
    unsent_ += "\r\n";
  }
  return unsent_.size() < kSendBytes ? ok() : flush();
}

Result<void> RedisConnection::flush() {
  std::string_view rest = unsent_;
  while (!rest.empty()) {
    const ssize_t sent = ::send(context_->fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return lost(errno, std::generic_category().message(errno));
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  unsent_.clear();
  return ok();
}

Result<RedisReply> RedisConnection::receive() {
  TRY(flush());
  void* raw = nullptr;
  errno = 0;
  if (redisGetReply(context_.get(), &raw) != REDIS_OK) {
    if (context_->err == REDIS_ERR_PROTOCOL) {
      return Error{
          ErrorCode::internal,
          std::string("the server at this address is not a Redis server: ") + context_->errstr, ""};
    }
    return lost(context_->err == REDIS_ERR_IO ? errno : 0, context_->errstr);
  }
  struct FreeReply {
    void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
  };
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(raw));
  return to_reply(*reply);
}

bool RedisConnection::is_open() const noexcept {
  std::array<char, 1> byte{};
  const ssize_t got = ::recv(context_->fd, byte.data(), byte.size(), MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

Error RedisConnection::lost(int error_number, std::string_view message) const {
  if (error_number == EAGAIN || error_number == EWOULDBLOCK) {
    return unavailable("no answer within " + std::to_string(timeouts_.command.count()) + " ms");
  }
  return unavailable("connection lost: " + std::string(message));
}

}  // namespace detent
