// What a check of a store has read and found so far, and how its parts read: what cannot be read is
// a finding, and hides nothing that can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/store_check.h"

namespace detent {

inline bool is_damage(const Error& error) noexcept { return error.code == ErrorCode::data_loss; }

/// The page that `read(limit)` answers. It fails as a whole where something in it cannot be read:
/// so it is asked for in ever smaller parts, up to there.
template <class Read>
auto read_in_parts(std::size_t& limit, Read read) -> decltype(read(limit)) {
  auto page = read(limit);
  while (!page && is_damage(page.error()) && limit > 1) page = read(limit /= 2);
  return page;
}

class StoreFindings {
 public:
  /// `at` is as check_store() says.
  explicit StoreFindings(const std::function<void(std::uint64_t)>& at) : at_(at) {}

  void add(std::string what) {
    ++report.finding_count;
    if (report.findings.size() < StoreReport::kMaxFindings) {
      report.findings.push_back(std::move(what));
    }
  }
  /// Whether it was read: damage is a finding. Errors: all others.
  template <class T>
  Result<bool> expect_read(const Result<T>& read, const std::string& what) {
    if (read) return true;
    if (!is_damage(read.error())) return read.error();
    add(what + ": " + read.error().message);
    return false;
  }
  void note_read(std::size_t count) {
    read_ += count;
    at_(read_);
  }

  StoreReport report;

 private:
  const std::function<void(std::uint64_t)>& at_;
  std::uint64_t read_ = 0;
};

}  // namespace detent
