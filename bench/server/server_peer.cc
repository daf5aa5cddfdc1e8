#include "bench/server/server_peer.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/rng.h"
#include "bench/server/server_socket.h"

namespace detent::bench {

const char* name_of(Promise promise) {
  switch (promise) {
    case Promise::memory:
      return "in memory";
    case Promise::interval:
      return "on disk later";
    case Promise::synced:
      return "on disk";
  }
  return "";
}

Account ServerPeer::account() const { return {::geteuid(), ::getegid()}; }

std::int64_t wall_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

void append_payload(std::string& text, std::int64_t due_us, std::size_t size) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  char due[24];
  const int digits = std::snprintf(due, sizeof(due), "%016lld", static_cast<long long>(due_us));
  const std::size_t full = text.size() + size;
  text.append(due, static_cast<std::size_t>(digits));
  Rng rng(static_cast<std::uint64_t>(due_us));
  while (text.size() < full) {
    std::uint64_t bits = rng.next();
    for (int i = 0; i < 10 && text.size() < full; ++i, bits >>= 6) text += kLetters[bits % 64];
  }
}

std::int64_t due_of_payload(std::string_view payload) {
  std::int64_t due_us = 0;
  const char* const end = payload.data() + std::min<std::size_t>(16, payload.size());
  if (std::from_chars(payload.data(), end, due_us).ec != std::errc{}) {
    throw ServerError("a payload that was never sent: " + std::string(payload));
  }
  return due_us;
}

void pause_for_poll() { std::this_thread::sleep_for(std::chrono::milliseconds{1}); }

}  // namespace detent::bench
