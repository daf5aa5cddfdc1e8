#include "server/cluster/cluster_figures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/bytes.h"
#include "base/fnv.h"

namespace detent::server {
namespace {

/// The first byte: the version of the format. Raise it with every change of the format.
constexpr std::uint8_t kFormat = 1;

/// All numbers of the sum, in their order on the wire.
std::array<std::uint64_t*, 27> numbers_of(EngineStats& stats) {
  static_assert(kLatenessCauses == 4);
  TaskCounters& counters = stats.counters;
  return {&counters.scheduled,    &counters.fired,
          &counters.leased,       &counters.completed,
          &counters.failed,       &counters.cancelled,
          &counters.dead,         &counters.leases_expired,
          &counters.conflicts,    &counters.quarantined,
          &stats.all.scheduled,   &stats.all.ready,
          &stats.all.leased,      &stats.all.dead,
          &stats.queue_count,     &stats.loaded,
          &stats.urgent,          &stats.waiting_workers,
          &stats.schedules,       &stats.commits,
          &stats.committed_tasks, &stats.epoch,
          &stats.late.tasks[0],   &stats.late.tasks[1],
          &stats.late.tasks[2],   &stats.late.tasks[3],
          &stats.orphans};
}

void write(ByteWriter& writer, const HistogramSnapshot& histogram) {
  writer.varint(histogram.bounds.size());
  for (const auto bound : histogram.bounds) {
    writer.varint(static_cast<std::uint64_t>(bound.count()));
  }
  for (const std::uint64_t count : histogram.counts) writer.varint(count);
  writer.varint(histogram.sum_ns);
}

Result<HistogramSnapshot> read_histogram(ByteReader& reader) {
  constexpr std::uint64_t kMostBounds = 62;  // of any histogram: base/histogram.h
  ASSIGN_OR_RETURN(const std::uint64_t bounds, reader.varint());
  if (bounds > kMostBounds) return Error{ErrorCode::data_loss, "figures: too many buckets", ""};
  HistogramSnapshot read;
  for (std::uint64_t i = 0; i < bounds; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t bound, reader.varint());
    read.bounds.emplace_back(static_cast<std::int64_t>(bound));
  }
  for (std::uint64_t i = 0; bounds > 0 && i <= bounds; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
    read.counts.push_back(count);
    read.count += count;
  }
  ASSIGN_OR_RETURN(read.sum_ns, reader.varint());
  return read;
}

}  // namespace

void ClusterFigures::add(const ClusterFigures& other) {
  of.insert(of.end(), other.of.begin(), other.of.end());
  EngineStats more = other.sum;
  const auto to = numbers_of(sum);
  const auto from = numbers_of(more);
  for (std::size_t i = 0; i < to.size(); ++i) *to[i] += *from[i];
  for (std::size_t i = 0; i < kLatenessCauses; ++i) sum.late.time[i] += more.late.time[i];
  sum.lateness.add(other.sum.lateness);
  sum.commit_time.add(other.sum.commit_time);
}

EngineStats ClusterFigures::stats() && {
  std::ranges::sort(of, {}, &ShardBacklog::lease);
  Fnv1a hash;
  for (const auto& [lease, ready] : of) {
    hash.bytes(std::to_string(lease.shard) + " " + std::to_string(lease.epoch) + "\n");
  }
  sum.epoch = hash.value();
  return std::move(sum);
}

std::string encode_figures(const ClusterFigures& figures) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u8(kFormat);
  writer.varint(figures.of.size());
  for (const auto& [lease, ready] : figures.of) {
    writer.varint(lease.shard);
    writer.varint(lease.epoch);
    writer.varint(ready);
  }
  EngineStats copy = figures.sum;
  for (const std::uint64_t* const number : numbers_of(copy)) writer.varint(*number);
  for (const std::chrono::milliseconds time : figures.sum.late.time) {
    writer.varint(static_cast<std::uint64_t>(time.count()));
  }
  write(writer, figures.sum.lateness);
  write(writer, figures.sum.commit_time);
  return bytes;
}

Result<ClusterFigures> decode_figures(std::string_view bytes) {
  ByteReader reader(bytes);
  ClusterFigures figures;
  ASSIGN_OR_RETURN(const std::uint8_t format, reader.u8());
  if (format != kFormat)
    return Error{ErrorCode::data_loss, "figures: unknown version of the format", ""};
  ASSIGN_OR_RETURN(const std::uint64_t leases, reader.varint());
  for (std::uint64_t i = 0; i < leases; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t shard, reader.varint());
    ASSIGN_OR_RETURN(const std::uint64_t epoch, reader.varint());
    ASSIGN_OR_RETURN(const std::uint64_t ready, reader.varint());
    figures.of.push_back({{static_cast<ShardNumber>(shard), epoch}, ready});
  }
  for (std::uint64_t* const number : numbers_of(figures.sum)) {
    ASSIGN_OR_RETURN(*number, reader.varint());
  }
  for (std::chrono::milliseconds& time : figures.sum.late.time) {
    ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint());
    time = std::chrono::milliseconds{static_cast<std::int64_t>(count)};
  }
  ASSIGN_OR_RETURN(figures.sum.lateness, read_histogram(reader));
  ASSIGN_OR_RETURN(figures.sum.commit_time, read_histogram(reader));
  return figures;
}

}  // namespace detent::server
