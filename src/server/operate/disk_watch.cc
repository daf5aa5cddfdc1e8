#include "server/operate/disk_watch.h"

#include <utility>

#include "base/log/log.h"

namespace detent::server {
namespace {

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

DiskWatch::DiskWatch(DiskWatchOptions options, TaskIntake& intake, Clock& clock)
    : options_(std::move(options)), intake_(intake), clock_(clock) {
  look();
  thread_ = Thread([this] { run(); });
}

DiskWatch::~DiskWatch() {
  is_stopping_ = true;
  bell_.ring();
}

void DiskWatch::run() {
  while (!is_stopping_) {
    clock_.wait(bell_, clock_.now() + kLookPeriod);
    if (!is_stopping_) look();
  }
}

void DiskWatch::look() {
  const std::optional<std::uint64_t> free = options_.read();
  free_bytes_.store(free.value_or(kUnknown), std::memory_order_relaxed);
  if (!free) return;
  const std::uint64_t least = options_.min_free_bytes;
  if (*free < least || (low_since_ && *free < least + least / 4)) return refuse(*free);
  if (!low_since_) return;
  intake_.open();
  log_info("the disk has enough free space; new tasks are accepted again",
           {{"folder", options_.folder},
            {"free", mebibytes(*free)},
            {"after", shown_since(*low_since_, clock_.now())}});
  low_since_.reset();
  pace_ = {};
}

void DiskWatch::refuse(std::uint64_t free) {
  const MonotonicTime now = clock_.now();
  if (!low_since_) low_since_ = now;
  intake_.close({ErrorCode::unavailable,
                 "the disk of the server is nearly full: " + mebibytes(free) +
                     " are free, and --min-free-disk is " + mebibytes(options_.min_free_bytes) +
                     "; new tasks are refused until there is space",
                 ""});
  if (!pace_.is_worth_a_line("", now)) return;
  log_error(
      "the disk is nearly full; new tasks are refused",
      {{"folder", options_.folder},
       {"free", mebibytes(free)},
       {"min_free_disk", mebibytes(options_.min_free_bytes)},
       {"since", shown_since(*low_since_, now)},
       {"action",
        "delete files outside of this folder, or enlarge the disk; stored tasks are still handed "
        "out"}});
}

std::optional<DiskFigures> DiskWatch::figures() const noexcept {
  const std::uint64_t free = free_bytes_.load(std::memory_order_relaxed);
  if (free == kUnknown) return std::nullopt;
  return DiskFigures{.free_bytes = free, .min_free_bytes = options_.min_free_bytes};
}

}  // namespace detent::server
