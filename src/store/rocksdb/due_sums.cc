#include "store/rocksdb/due_sums.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/range_scan.h"

namespace detent {

namespace {

// A start reads changes of fewer bytes quickly, so they do not need new full sums.
constexpr std::size_t kMinFullBytes = std::size_t{1} << 20;

/// Converts a bin to a number. Neighbouring bins have close numbers, so their differences are short
/// varints.
std::int64_t packed(DueBin bin) noexcept {
  return bin.number * 2 + (bin.width == DueBin::Width::day ? 1 : 0);
}
DueBin unpacked(std::int64_t number) noexcept {
  const bool is_day = (number & 1) != 0;
  return {.width = is_day ? DueBin::Width::day : DueBin::Width::minute, .number = number >> 1};
}

/// Converts signed numbers close to 0 to small unsigned numbers, as Protocol Buffers do.
std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

}  // namespace

std::string due_count_bytes(std::span<const DueCount> counts) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sorted;
  sorted.reserve(counts.size());
  for (const DueCount& count : counts) sorted.emplace_back(packed(count.bin), count.count);
  std::sort(sorted.begin(), sorted.end());
  std::string bytes;
  ByteWriter writer(bytes);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    const std::int64_t bin = sorted[i].first;
    std::int64_t sum = 0;
    for (; i < sorted.size() && sorted[i].first == bin; ++i) sum += sorted[i].second;
    if (sum == 0) continue;
    writer.varint(zigzag(bin - before));
    writer.varint(zigzag(sum));
    before = bin;
  }
  return bytes;
}

Result<std::vector<DueCount>> parse_due_counts(std::string_view bytes) {
  std::vector<DueCount> counts;
  ByteReader reader(bytes);
  std::int64_t bin = 0;
  while (!reader.at_end()) {
    ASSIGN_OR_RETURN(const std::uint64_t difference, reader.varint());
    ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
    bin += unzigzag(difference);
    counts.push_back({unpacked(bin), unzigzag(count)});
  }
  return counts;
}

Result<DueSums> DueSums::read(OpenDb& db) {
  DueSums sums;
  ASSIGN_OR_RETURN(const auto full, db.read_meta(kDueSumsKey));
  if (full) {
    if (!sums.set_full(*full)) return db.damaged("the due counts are malformed");
  }
  sums.next_number_ = sums.first_number_;
  RangeScan scan(db.db(), db.meta(), {counts_key(sums.first_number_), std::string(kCountsEnd)});
  for (; scan.is_valid(); scan.next()) {
    if (scan.key() != counts_key(sums.next_number_)) {
      return db.damaged("a change of the due counts is missing");
    }
    const auto bytes = parse_meta_value(scan.key(), scan.value());
    if (!bytes) return db.damaged("a change of the due counts does not match its checksum");
    if (!sums.add(*bytes)) return db.damaged("a change of the due counts is malformed");
    sums.change_bytes_ += bytes->size();
    ++sums.next_number_;
  }
  if (!scan.status().ok()) return db.open_error(scan.status());
  return sums;
}

Result<void> DueSums::set_full(std::string_view bytes) {
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(first_number_, reader.varint());
  full_size_ = bytes.size();
  return add(bytes.substr(reader.position()));
}

Result<void> DueSums::add(std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::vector<DueCount> counts, parse_due_counts(bytes));
  written(counts);
  return ok();
}

void DueSums::stage(std::span<const DueCount> counts, Changes& changes) {
  DETENT_CHECK(first_number_ <= next_number_);
  staged_bytes_ = 0;
  if (counts.empty()) return;
  std::string bytes = due_count_bytes(counts);
  if (bytes.empty()) return;
  staged_bytes_ = bytes.size();
  changes.set_meta(counts_key(next_number_), std::move(bytes));
}

void DueSums::written(std::span<const DueCount> counts) {
  if (staged_bytes_ > 0) ++next_number_;
  change_bytes_ += std::exchange(staged_bytes_, 0);
  for (const DueCount& count : counts) {
    const auto [sum, is_new] = sums_.try_emplace(packed(count.bin), count.count);
    if (!is_new) sum->second += count.count;
    if (sum->second == 0) sums_.erase(sum);
  }
}

bool DueSums::wants_full() const noexcept {
  return change_bytes_ > std::max(full_size_, kMinFullBytes);
}

std::string DueSums::full_bytes() const {
  std::string bytes;
  ByteWriter(bytes).varint(next_number_);
  return bytes + due_count_bytes(counts());
}

void DueSums::stage_full(Changes& changes) {
  if (first_number_ == next_number_) return;
  std::string bytes = full_bytes();
  DETENT_CHECK(first_number_ < next_number_);
  full_size_ = bytes.size();
  changes.set_meta(kDueSumsKey, std::move(bytes));
  changes.remove_meta_range(counts_key(first_number_), counts_key(next_number_));
}

void DueSums::full_written() {
  first_number_ = next_number_;
  change_bytes_ = 0;
}

std::vector<DueCount> DueSums::counts() const {
  std::vector<DueCount> counts;
  counts.reserve(sums_.size());
  for (const auto& [bin, sum] : sums_) counts.push_back({unpacked(bin), sum});
  std::sort(counts.begin(), counts.end(),
            [](const DueCount& a, const DueCount& b) { return a.bin < b.bin; });
  return counts;
}

}  // namespace detent
