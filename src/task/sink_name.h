// The name of a sink: a broker that the server was started with, which a queue may have in the
// place of a webhook's URL, as "sink:" and this name.
//
// So to the engine and the stores there is one kind of queue whose tasks no worker leases. What the
// name stands for, sinks/open_sinks.h reads; protocols show it as a setting of its own, `sink`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace detent {

inline constexpr std::size_t kMaxSinkNameBytes = 64;
/// What a queue's webhook begins with that is a sink.
inline constexpr std::string_view kSinkScheme = "sink:";

/// The name of the sink; "" when this is the URL of a webhook.
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
