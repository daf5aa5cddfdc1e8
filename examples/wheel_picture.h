// Draws the movements of a hierarchical wheel as an animated SVG: without scripts or external
// files, in light and dark colours. Each moving part has a *track*: its look at each tick. Programs
// without animation show one tick, kPosterTick.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detent/tick.h"

/// The place of a timer in the picture: its slot, and its place in this slot.
struct Seat {
  std::size_t level = 0;
  std::size_t index = 0;
  std::size_t number = 0;

  bool operator==(const Seat&) const = default;
};

/// The wheel after a tick.
struct Frame {
  std::vector<std::size_t> hands;              // per level: the slot of the hand
  std::vector<std::vector<std::size_t>> fill;  // per level and slot: the number of timers
  std::vector<std::optional<Seat>> seats;      // per timer; empty while it is not pending
};

/// The movements of a wheel: one frame per tick, from tick 0 on. Each timer is scheduled once and
/// fires.
struct Recording {
  std::vector<detent::Tick> deadlines;  // per timer
  std::vector<Frame> frames;
};

/// Returns the content of the SVG file.
std::string draw(const Recording& recording);
