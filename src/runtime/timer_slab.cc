#include "runtime/timer_slab.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "detent/check.h"

namespace detent::internal {

TimerEntry& TimerSlab::allocate() {
  if (open_.empty()) {
    DETENT_CHECK(chunks_.size() < std::numeric_limits<std::uint32_t>::max() / kChunkSize);
    // Room for every chunk's index now, so that release never allocates.
    if (open_.capacity() <= chunks_.size()) open_.reserve(2 * chunks_.size() + 1);
    open_.push_back(static_cast<std::uint32_t>(chunks_.size()));
    chunks_.emplace_back();
  }
  const std::uint32_t index = open_.back();
  std::unique_ptr<Chunk>& chunk = chunks_[index];
  if (chunk == nullptr) chunk = std::make_unique<Chunk>();
  if (spare_ == index) spare_.reset();

  const auto slot = static_cast<std::uint32_t>(std::countr_zero(chunk->free));
  chunk->free &= chunk->free - 1;
  if (chunk->free == 0) open_.pop_back();
  ++size_;
  TimerEntry& entry = chunk->entries[slot];
  entry.id = {.index = index * static_cast<std::uint32_t>(kChunkSize) + slot,
              .generation = next_generation_++};
  return entry;
}

TimerEntry* TimerSlab::find(TimerId id) const noexcept {
  const std::size_t index = id.index / kChunkSize;
  if (id.generation == 0 || index >= chunks_.size() || chunks_[index] == nullptr) return nullptr;
  TimerEntry& entry = chunks_[index]->entries[id.index % kChunkSize];
  return entry.id.generation == id.generation ? &entry : nullptr;
}

void TimerSlab::release(TimerEntry& entry) noexcept {
  DETENT_CHECK(!entry.is_pending());
  DETENT_CHECK(!entry.job);
  const auto index = static_cast<std::uint32_t>(entry.id.index / kChunkSize);
  Chunk& chunk = *chunks_[index];
  if (chunk.free == 0) open_.push_back(index);
  chunk.free |= std::uint64_t{1} << (entry.id.index % kChunkSize);
  --size_;
  entry.id = {};
  entry.due_at_wall.reset();
  entry.periodic.reset();
  entry.state = TimerState::free;
  entry.cancelled = false;
  if (chunk.free != ~std::uint64_t{0}) return;
  if (spare_) {
    chunks_[index].reset();
  } else {
    spare_ = index;
  }
}

std::size_t TimerSlab::allocated_chunks() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      chunks_.begin(), chunks_.end(), [](const auto& chunk) { return chunk != nullptr; }));
}

}  // namespace detent::internal
