// Draws what a hierarchical wheel did as an SVG that moves by itself: no script, nothing to load,
// light and dark. Each moving thing is a *track*: what it looks like at which tick. Programs that
// don't animate show one tick of it, kPosterTick.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detent/tick.h"

/// Where a timer is drawn: the slot it is in, and which of the places in that slot.
struct Seat {
  std::size_t level = 0;
  std::size_t index = 0;
  std::size_t number = 0;

  bool operator==(const Seat&) const = default;
};

/// The wheel after a tick.
struct Frame {
  std::vector<std::size_t> hands;              // of each level: the slot it points at
  std::vector<std::vector<std::size_t>> fill;  // of each level and slot: how many timers it holds
  std::vector<std::optional<Seat>> seats;      // of each timer; none while it is not pending
};

/// What a wheel did: a frame a tick, from tick 0 on. Each timer is scheduled once and fires.
struct Recording {
  std::vector<detent::Tick> deadlines;  // of each timer
  std::vector<Frame> frames;
};

/// Returns: the whole file.
std::string draw(const Recording& recording);
