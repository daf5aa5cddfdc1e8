#include "task/webhook.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "task/sink_name.h"

namespace detent {

namespace {

constexpr std::string_view kKeyPrefix = "whsec_";

Error invalid(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}
Error wrong_url(std::string message) { return invalid("webhook", std::move(message)); }
Error wrong_headers(std::string message) { return invalid("headers", std::move(message)); }

// Not the functions of <cctype>: the result must not depend on the locale.
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_hex(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_lower_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f'); }
constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool is_same_name(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The bytes that a URL may have (RFC 3986, 2), without the "#" of a fragment.
bool is_url_byte(char c) noexcept {
  return is_letter(c) || is_digit(c) ||
         std::string_view("-._~:/?[]@!$&'()*+,;=%").find(c) != std::string_view::npos;
}

bool is_port(std::string_view text) noexcept {
  std::uint32_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && stop == end && text.size() <= 5 && port >= 1 && port <= 65'535;
}

/// A name, an IPv4 address, or an IPv6 address in brackets. The resolver checks the digits.
bool is_host(std::string_view host) noexcept {
  if (host.starts_with('[')) {
    return host.size() > 2 && host.ends_with(']') &&
           std::ranges::all_of(host.substr(1, host.size() - 2),
                               [](char c) { return is_hex(c) || c == ':' || c == '.'; });
  }
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
  });
}

Result<void> validate_authority(std::string_view authority) {
  if (authority.find('@') != std::string_view::npos) {
    return wrong_url("a webhook's URL must not have a user or password; use a header");
  }
  std::string_view host = authority;
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    host = authority.substr(0, colon);
    if (!is_port(authority.substr(colon + 1))) {
      return wrong_url("the port of a webhook's URL must be 1 to 65535");
    }
  }
  if (!is_host(host)) return wrong_url("a webhook's URL must have the name or address of a host");
  return ok();
}

bool is_token_byte(char c) noexcept {
  return is_letter(c) || is_digit(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

Result<void> validate_header(const TaskHeader& header) {
  const auto& [name, value] = header;
  if (name.empty() || name.size() > kMaxHeaderNameBytes ||
      !std::ranges::all_of(name, is_token_byte)) {
    return wrong_headers("a header's name must be 1 to 64 letters, digits and !#$%&'*+-.^_`|~");
  }
  if (is_delivery_header(name)) {
    return wrong_headers("the server itself sets the header " + name + "; remove it");
  }
  const auto is_visible = [](char c) { return c >= ' ' && c <= '~'; };
  if (value.size() > kMaxHeaderValueBytes || !std::ranges::all_of(value, is_visible) ||
      value.starts_with(' ') || value.ends_with(' ')) {
    return wrong_headers("the value of the header " + name +
                         " must be at most 1024 bytes of visible ASCII, with spaces only inside");
  }
  return ok();
}

bool is_webhook_key(std::string_view key) {
  if (!key.starts_with(kKeyPrefix)) return false;
  const std::optional<std::string> secret = decode_base64(key.substr(kKeyPrefix.size()));
  return secret && secret->size() >= kLeastWebhookKeyBytes && secret->size() <= kMaxWebhookKeyBytes;
}

}  // namespace

QueueWebhook redacted(QueueWebhook webhook) {
  for (std::string& key : webhook.keys) key = kRedactedWebhookKey;
  return webhook;
}

Result<void> validate_webhook_url(std::string_view url) {
  if (url.size() > kMaxWebhookBytes) {
    return wrong_url("a webhook's URL must be at most " + std::to_string(kMaxWebhookBytes) +
                     " bytes");
  }
  if (url.find('#') != std::string_view::npos) {
    return wrong_url("a webhook's URL must not have a fragment (#): a server never receives it");
  }
  if (!std::ranges::all_of(url, is_url_byte)) {
    return wrong_url(
        "a webhook's URL must have only characters that RFC 3986 allows; write others as %XX");
  }
  std::string_view rest = url;
  if (url.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (url.starts_with("https://")) {
    rest.remove_prefix(8);
  } else {
    return wrong_url("a webhook must be a URL that begins with http:// or https://");
  }
  return validate_authority(rest.substr(0, rest.find_first_of("/?")));
}

Result<void> validate_headers(const TaskHeaders& headers) {
  if (headers.size() > kMaxHeaders) {
    return wrong_headers("a task has at most " + std::to_string(kMaxHeaders) + " headers");
  }
  std::size_t bytes = 0;
  for (auto header = headers.begin(); header != headers.end(); ++header) {
    TRY(validate_header(*header));
    bytes += header->name.size() + header->value.size();
    const auto is_same = [&](const TaskHeader& other) {
      return is_same_name(other.name, header->name);
    };
    if (std::any_of(headers.begin(), header, is_same)) {
      return wrong_headers("the header " + header->name + " is given more than once");
    }
  }
  if (bytes > kMaxHeadersBytes) {
    return wrong_headers("the headers of a task are at most " + std::to_string(kMaxHeadersBytes) +
                         " bytes together");
  }
  return ok();
}

Result<void> validate(const QueueWebhook& webhook) {
  if (webhook.url.starts_with(kSinkScheme)) {
    if (is_sink_name(sink_of(webhook.url)) && webhook.keys.empty()) return ok();
    return invalid("sink", "a sink's name must be 1 to 64 letters, digits, dots, - and _");
  }
  TRY(validate_webhook_url(webhook.url));
  if (webhook.keys.size() > kMaxWebhookKeys) {
    return wrong_url("a queue's webhook has at most " + std::to_string(kMaxWebhookKeys) + " keys");
  }
  if (!std::ranges::all_of(webhook.keys, is_webhook_key)) {
    return wrong_url("a webhook key must be whsec_ and 24 to 64 bytes in base64 with padding");
  }
  return ok();
}

bool is_delivery_header(std::string_view name) {
  std::string lowered(name);
  std::ranges::transform(lowered, lowered.begin(), lower);
  constexpr std::array<std::string_view, 11> kNames{
      "connection", "content-length", "content-type",      "expect",  "host",      "keep-alive",
      "te",         "trailer",        "transfer-encoding", "upgrade", "user-agent"};
  constexpr std::array<std::string_view, 3> kPrefixes{"webhook-", "detent-", "proxy-"};
  return std::ranges::find(kNames, lowered) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](std::string_view p) { return lowered.starts_with(p); });
}

const std::string* find_header(const TaskHeaders& headers, std::string_view name) noexcept {
  for (const TaskHeader& header : headers) {
    if (is_same_name(header.name, name)) return &header.value;
  }
  return nullptr;
}

bool is_trace_header(std::string_view name) noexcept {
  return is_same_name(name, "traceparent") || is_same_name(name, "tracestate");
}

bool is_traceparent(std::string_view value) noexcept {
  // 00-<trace: 32 digits>-<parent: 16>-<flags: 2>
  constexpr std::string_view kForm = "vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-ff";
  if (value.size() < kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '-' ? value[i] != '-' : !is_lower_hex(value[i])) return false;
  }
  const auto is_zero = [](std::string_view digits) {
    return digits.find_first_not_of('0') == std::string_view::npos;
  };
  if (is_zero(value.substr(3, 32)) || is_zero(value.substr(36, 16))) return false;
  if (value.starts_with("ff")) return false;
  if (value.size() == kForm.size()) return true;
  return !value.starts_with("00") && value[kForm.size()] == '-';
}

void keep_trace(TaskHeaders& headers, std::string_view traceparent, std::string_view tracestate) {
  if (!is_traceparent(traceparent) || find_header(headers, "traceparent") != nullptr) return;
  TaskHeaders traced = headers;
  traced.push_back({"traceparent", std::string(traceparent)});
  if (!validate_headers(traced)) return;
  headers = traced;
  if (tracestate.empty() || find_header(headers, "tracestate") != nullptr) return;
  traced.push_back({"tracestate", std::string(tracestate)});
  if (validate_headers(traced)) headers = std::move(traced);
}

}  // namespace detent
