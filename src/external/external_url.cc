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

/// The forms that it shows have nothing that would be masked as a secret where errors are told.
Error wrong(std::string message) {
  return {ErrorCode::invalid_argument,
          message +
              "; write redis://HOST:PORT[/DATABASE][?name=NAME], "
              "redis+unix:///path/of/socket[?name=NAME] or "
              "http[s]://HOST:PORT[?queue=NAME][&ca=FILE], with [USER]:PASSWORD@ before the HOST "
              "of a Redis, TOKEN@ before that of a server, where one is asked for",
          "external"};
}

/// Reads all of `text` as a number.
std::optional<std::uint32_t> parse_number(std::string_view text, int base) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// "%40" becomes "@".
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

/// What is before the last `mark`, which is cut off `text` with it; nothing without a mark.
std::optional<std::string_view> cut_front(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at + 1);
  return front;
}

/// What is after the first `mark`, likewise.
std::optional<std::string_view> cut_back(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view back = text.substr(at + 1);
  text = text.substr(0, at);
  return back;
}

Result<void> read_log_in(std::string_view log_in, RedisOptions& options) {
  const std::optional<std::string_view> password = cut_back(log_in, ':');
  if (!password) return wrong("there is no password before the @");
  const auto user = decode_percent(log_in);
  const auto secret = decode_percent(*password);
  if (!user || !secret) return wrong("a % in user or password is not followed by two digits");
  options.user = *user;
  options.password = *secret;
  return ok();
}

/// Cuts off what follows a "?", which must be `field` and its value.
Result<void> read_query(std::string_view& url, std::string_view field, std::string& value) {
  const auto query = cut_back(url, '?');
  if (!query) return ok();
  if (!query->starts_with(field)) {
    return wrong("only " + std::string(field) + " may follow the ?");
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
    return wrong("it is no address of a Redis or a detent server");
  }
  url.remove_prefix(is_tcp ? kTcp.size() : kUnix.size());
  // A password may have any of the marks below.
  if (is_tcp) {
    if (const auto log_in = cut_front(url, '@')) TRY(read_log_in(*log_in, options));
  }
  TRY(read_query(url, "name=", options.name));
  if (is_tcp) {
    if (const auto text = cut_back(url, '/'); text && !text->empty()) {
      const auto database = parse_number(*text, 10);
      if (!database) return wrong("the database is not a number");
      options.database = *database;
    }
  } else if (!url.starts_with('/')) {
    return wrong("the path of the socket must begin with /");
  }
  options.address = url;
  return options;
}

/// What a token may be of (RFC 6750, b64token), so that it cannot break up a header.
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
      return wrong("only queue= and ca= may follow the ?");
    }
    query = rest;
  }
  const std::string_view scheme = url.substr(0, url.find("://") + 3);
  url.remove_prefix(scheme.size());
  if (const auto token = cut_front(url, '@')) {
    if (!is_token(*token)) return wrong("there is no token before the @");
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
