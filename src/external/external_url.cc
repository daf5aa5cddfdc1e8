#include "external/external_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace detent {

namespace {

/// The message does not show the URL, because the URL may contain a password.
Error wrong(std::string_view message) {
  return {ErrorCode::invalid_argument, std::string(message), "external"};
}

/// Reads all of `text` as a number of this base.
std::optional<std::uint32_t> parse_number(std::string_view text, int base) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// Replaces each "%XX" by the byte with this hexadecimal number: "%40" becomes "@".
std::optional<std::string> decode_percent(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto byte = parse_number(text.substr(i + 1, 2), 16);
    if (!byte) return std::nullopt;
    decoded += static_cast<char>(*byte);
    i += 2;
  }
  return decoded;
}

/// Cuts `text` after the last `mark`. Returns the part before the mark; std::nullopt if there is no
/// mark. `text` keeps the part after it.
std::optional<std::string_view> cut_front(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at + 1);
  return front;
}

/// Cuts `text` at the first `mark`. Returns the part after the mark; std::nullopt if there is no
/// mark. `text` keeps the part before it.
std::optional<std::string_view> cut_back(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view back = text.substr(at + 1);
  text = text.substr(0, at);
  return back;
}

Result<void> read_log_in(std::string_view log_in, RedisOptions& options) {
  const std::optional<std::string_view> password = cut_back(log_in, ':');
  if (!password) return wrong("the log-in before the @ must be USER:PASSWORD or :PASSWORD");
  const auto user = decode_percent(log_in);
  const auto secret = decode_percent(*password);
  if (!user || !secret)
    return wrong("a % in the user or password must be followed by two hexadecimal digits");
  options.user = *user;
  options.password = *secret;
  return ok();
}

/// Cuts off the part after a "?". It must begin with `field`; the rest is stored in `value`.
Result<void> read_query(std::string_view& url, std::string_view field, std::string& value) {
  const auto query = cut_back(url, '?');
  if (!query) return ok();
  if (!query->starts_with(field)) {
    return wrong("only " + std::string(field) + "NAME is allowed after the ?");
  }
  value = query->substr(field.size());
  return ok();
}

Result<RedisOptions> parse_redis_url(std::string_view url) {
  constexpr std::string_view kTcp = "redis://";
  constexpr std::string_view kUnix = "redis+unix://";
  RedisOptions options;
  const bool is_tcp = url.starts_with(kTcp);
  if (!is_tcp && !url.starts_with(kUnix)) {
    return wrong(
        "must begin with redis://, redis+unix://, http:// or https://, such as "
        "redis://127.0.0.1:6379");
  }
  url.remove_prefix(is_tcp ? kTcp.size() : kUnix.size());
  // Read the password before everything else, because it may contain "?" and "/".
  if (is_tcp) {
    if (const auto log_in = cut_front(url, '@')) TRY(read_log_in(*log_in, options));
  }
  TRY(read_query(url, "name=", options.name));
  if (is_tcp) {
    if (const auto text = cut_back(url, '/'); text && !text->empty()) {
      const auto database = parse_number(*text, 10);
      if (!database) return wrong("the database after the / must be a number");
      options.database = *database;
    }
  } else if (!url.starts_with('/')) {
    return wrong("the path of the socket must begin with /, as in redis+unix:///run/redis.sock");
  }
  options.address = url;
  return options;
}

/// Returns whether the text has only the characters that RFC 6750 allows in a token (b64token). So
/// a token cannot contain a line break that would end its HTTP header.
bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "-._~+/=";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != kOthers.npos;
  });
}

Result<RemoteDetentOptions> parse_remote_url(std::string_view url) {
  RemoteDetentOptions options;
  std::string_view query = cut_back(url, '?').value_or("");
  while (!query.empty()) {
    const std::string_view rest = cut_back(query, '&').value_or("");
    if (query.starts_with("queue=")) {
      options.queue = query.substr(6);
    } else if (query.starts_with("ca=")) {
      options.ca_file = query.substr(3);
    } else {
      return wrong("only queue=NAME and ca=FILE, joined by &, are allowed after the ?");
    }
    query = rest;
  }
  const std::string_view scheme = url.substr(0, url.find("://") + 3);
  url.remove_prefix(scheme.size());
  if (const auto token = cut_front(url, '@')) {
    if (!is_token(*token))
      return wrong("the text before the @ must be an access token of the other server");
    options.token = *token;
  }
  options.url = std::string(scheme) + std::string(url);
  return options;
}

}  // namespace

Result<ExternalOptions> parse_external_url(std::string_view url) {
  if (url.starts_with("http://") || url.starts_with("https://")) {
    ASSIGN_OR_RETURN(RemoteDetentOptions remote, parse_remote_url(url));
    return ExternalOptions(std::move(remote));
  }
  ASSIGN_OR_RETURN(RedisOptions redis, parse_redis_url(url));
  return ExternalOptions(std::move(redis));
}

}  // namespace detent
