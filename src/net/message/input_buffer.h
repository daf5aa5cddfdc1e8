// The bytes of a connection between the socket and the parser.
//
// Most reads contain whole requests. These are parsed in the read buffer that all connections
// share. Only unparsed bytes are copied, so a waiting connection needs no buffer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace detent::net {

/// Bytes that were read from a client and not parsed yet: an incomplete request, or pipelined
/// requests. Holds at most one read and one unfinished header. Thread-compatible.
class InputBuffer {
 public:
  bool empty() const noexcept { return begin_ == kept_.size(); }

  /// Returns the kept bytes followed by `fresh`, in one piece; valid until the next call.
  std::string_view join(std::string_view fresh) {
    if (empty()) return fresh;
    if (!fresh.empty()) kept_.erase(0, std::exchange(begin_, 0)).append(fresh);
    return std::string_view{kept_}.substr(begin_);
  }

  /// Keeps the bytes after the first `taken` bytes of `joined`, which is the result of join().
  void drop(std::string_view joined, std::size_t taken) {
    if (empty()) {
      kept_.assign(joined.substr(taken));
      begin_ = 0;
    } else {
      begin_ += taken;
    }
    if (!empty()) return;
    begin_ = 0;
    kept_.clear();
    if (kept_.capacity() > kKeptBytes) kept_.shrink_to_fit();
  }

 private:
  static constexpr std::size_t kKeptBytes = 4 * 1024;  // the most memory that an empty buffer keeps

  std::string kept_;
  std::size_t begin_ = 0;
};

}  // namespace detent::net
