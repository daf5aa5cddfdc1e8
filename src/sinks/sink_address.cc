#include "sinks/sink_address.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "task/sink_name.h"

namespace detent {
namespace {

constexpr std::string_view kSpace = " \t\r";

Error invalid(std::string_view what) {
  return {ErrorCode::invalid_argument, std::string(what), "sinks"};
}

/// The forms have no log-in, because redact() would mask it.
Error wrong(std::string_view what) {
  return invalid(std::string(what) +
                 "; expected kafka://HOST:PORT/TOPIC, nats://HOST:PORT/SUBJECT or "
                 "redis://HOST:PORT/STREAM");
}

/// Returns the text before the first `mark`. `rest` becomes the text after it, or "" without a
/// `mark`.
std::string_view cut(std::string_view& rest, char mark) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view front = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return front;
}

/// Decodes "%40" to "@". All characters outside printable ASCII are refused.
Result<std::string> decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '%') {
      const char* const digits = text.data() + i + 1;
      const char* const end = digits + std::min<std::size_t>(2, text.size() - i - 1);
      const auto [stop, error] = std::from_chars(digits, end, byte, 16);
      if (error != std::errc{} || stop != digits + 2) {
        return wrong("a % must be followed by two hexadecimal digits");
      }
      i += 2;
    }
    if (byte < ' ' || byte > '~') return wrong("the address must be printable ASCII");
    decoded += static_cast<char>(byte);
  }
  return decoded;
}

bool is_broker(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  const bool is_bracketed = text.front() == '[' && text[colon - 1] == ']';
  const bool has_one_colon = text.find(':') == colon;
  return error == std::errc{} && stop == end && port != 0 && (has_one_colon || is_bracketed);
}

Result<void> read_brokers(std::string_view hosts, SinkAddress& address) {
  while (!hosts.empty()) {
    const std::string_view broker = cut(hosts, ',');
    if (!is_broker(broker))
      return wrong("each broker must be HOST:PORT, with commas between brokers");
    address.brokers.emplace_back(broker);
  }
  if (address.brokers.empty()) return wrong("the address has no broker");
  if (address.kind == SinkAddress::Kind::redis && address.brokers.size() > 1) {
    return wrong("a Redis address must have only one HOST:PORT");
  }
  return ok();
}

Result<void> read_log_in(std::string_view log_in, SinkAddress& address) {
  if (address.kind == SinkAddress::Kind::kafka) {
    return wrong("the log-in to Kafka must be in ?sasl.username=USER&sasl.password=PASSWORD");
  }
  ASSIGN_OR_RETURN(address.user, decode(cut(log_in, ':')));
  ASSIGN_OR_RETURN(address.password, decode(log_in));
  if (address.password.empty()) return wrong("the log-in before the @ must be USER:PASSWORD");
  return ok();
}

/// Checks settings here, because a broker would notice a wrong one at the first message, or never.
Result<void> check_setting(SinkAddress::Kind kind, const std::string& name,
                           const std::string& value) {
  if (kind == SinkAddress::Kind::kafka) return ok();  // librdkafka checks its settings
  if (kind == SinkAddress::Kind::nats) return wrong("a NATS address must end after the subject");
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  const bool is_number = error == std::errc{} && stop == end && number > 0;
  if (name != "maxlen" || !is_number)
    return wrong("only ?maxlen=N, with N greater than 0, may follow the stream of a Redis address");
  return ok();
}

Result<void> read_settings(std::string_view query, SinkAddress& address) {
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    ASSIGN_OR_RETURN(std::string name, decode(cut(value, '=')));
    ASSIGN_OR_RETURN(std::string decoded, decode(value));
    TRY(check_setting(address.kind, name, decoded));
    address.settings.emplace_back(std::move(name), std::move(decoded));
  }
  return ok();
}

}  // namespace

Result<SinkAddress> parse_sink_address(std::string_view url) {
  SinkAddress address;
  const std::string_view scheme = url.substr(0, url.find("://"));
  if (scheme == "kafka") {
    address.kind = SinkAddress::Kind::kafka;
  } else if (scheme == "nats") {
    address.kind = SinkAddress::Kind::nats;
  } else if (scheme == "redis") {
    address.kind = SinkAddress::Kind::redis;
  } else {
    return wrong("the address must begin with kafka://, nats:// or redis://");
  }
  url.remove_prefix(std::min(scheme.size() + 3, url.size()));
  std::string_view query = url;
  std::string_view rest = cut(query, '?');
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    TRY(read_log_in(rest.substr(0, at), address));
    rest.remove_prefix(at + 1);
  }
  TRY(read_brokers(cut(rest, '/'), address));
  ASSIGN_OR_RETURN(address.target, decode(rest));
  if (address.target.empty() || address.target.find_first_of(" *>") != std::string::npos) {
    return wrong("a /, and a topic, subject or stream without * and >, must follow the brokers");
  }
  TRY(read_settings(query, address));
  return address;
}

Result<std::map<std::string, SinkAddress>> parse_sink_lines(std::string_view lines) {
  std::map<std::string, SinkAddress> sinks;
  for (int number = 1; !lines.empty(); ++number) {
    std::string_view line = cut(lines, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string of_line = "line " + std::to_string(number);
    const std::string_view name = line.substr(0, line.find_first_of(kSpace));
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    line = line.substr(0, line.find_last_not_of(kSpace) + 1);
    if (!is_sink_name(name)) {
      return with_context(of_line, invalid("each line must begin with the name of a sink: 1 to 64 "
                                           "letters, digits, dots, - and _"));
    }
    Result<SinkAddress> address = parse_sink_address(line);
    if (!address) return with_context(of_line, std::move(address).error());
    if (!sinks.emplace(name, *std::move(address)).second) {
      return with_context(of_line, invalid("an earlier line has the same sink name"));
    }
  }
  return sinks;
}

}  // namespace detent
