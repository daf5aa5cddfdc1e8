#include "task/due_bin.h"

namespace detent {
namespace {

using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::minutes;
using Days = std::chrono::duration<std::int64_t, std::ratio<86'400>>;

}  // namespace

DueBin due_bin_of(WallTime due_at, WallTime created_at) noexcept {
  const milliseconds due = due_at.time_since_epoch();
  if (due - created_at.time_since_epoch() < kMinuteBinReach) {
    return {.width = DueBin::Width::minute, .number = floor<minutes>(due).count()};
  }
  return {.width = DueBin::Width::day, .number = floor<Days>(due).count()};
}

WallTime begin_of(DueBin bin) noexcept { return WallTime{bin.number * width_of(bin)}; }

milliseconds width_of(DueBin bin) noexcept {
  return bin.width == DueBin::Width::minute ? milliseconds{minutes{1}} : milliseconds{Days{1}};
}

}  // namespace detent
