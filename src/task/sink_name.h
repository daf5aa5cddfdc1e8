// The name of a sink. A sink is a broker that the server was started with. A queue can have a sink
// instead of the URL of a webhook: "sink:" and the name.
//
// So for the engine and the stores there is only one kind of queue whose tasks are not leased to
// workers. sinks/open_sinks.h finds the sink of a name. Protocols show the sink as a separate
// setting, `sink`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace detent {

inline constexpr std::size_t kMaxSinkNameBytes = 64;
/// The prefix of a queue's webhook that is a sink.
inline constexpr std::string_view kSinkScheme = "sink:";

/// The name of the sink; "" if `url` is the URL of a webhook.
constexpr std::string_view sink_of(std::string_view url) noexcept {
  return url.starts_with(kSinkScheme) ? url.substr(kSinkScheme.size()) : std::string_view();
}

/// 1 to kMaxSinkNameBytes letters, digits, dots, - and _.
constexpr bool is_sink_name(std::string_view name) noexcept {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !name.empty() && name.size() <= kMaxSinkNameBytes && std::ranges::all_of(name, is_part);
}

}  // namespace detent
