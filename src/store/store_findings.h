// The findings of a check of a store, and how the check reads the store. A part that cannot be read
// is a finding, and does not hide the parts that can be read.
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

/// Reads a page with `read(limit)`. A page fails as a whole if any part of it cannot be read. So
/// after a failure this function asks for ever smaller pages, until it has read all records before
/// the damage. `limit` keeps the smaller size.
template <class Read>
auto read_in_parts(std::size_t& limit, Read read) -> decltype(read(limit)) {
  auto page = read(limit);
  while (!page && is_damage(page.error()) && limit > 1) page = read(limit /= 2);
  return page;
}

class StoreFindings {
 public:
  /// `at` is the callback of check_store().
  explicit StoreFindings(const std::function<void(std::uint64_t)>& at) : at_(at) {}

  void add(std::string what) {
    ++report.finding_count;
    if (report.findings.size() < StoreReport::kMaxFindings) {
      report.findings.push_back(std::move(what));
    }
  }
  /// Returns true if `read` has a value. Returns false if it is damaged, and adds a finding. All
  /// other errors are returned as errors.
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
