// Draws still figures of timer queues as SVG: a few numbered moments, each with the state of the
// queue and a caption. The figures have no scripts and no external files, and follow the light or
// dark colours of the reader. The program that calls draw() reads the states from real queues.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "detent/tick.h"

/// A slot that holds timers, or that has just fired timers.
struct SlotPicture {
  std::size_t index = 0;
  std::vector<detent::Tick> deadlines{};
  std::vector<detent::Tick> fired{};
};

/// A level of a wheel, with its hand.
struct LevelPicture {
  std::string name;
  std::size_t slot_count = 0;
  std::optional<std::size_t> hand{};
  std::vector<SlotPicture> slots{};
};

/// Levels that are drawn as rings, side by side.
struct Dials {
  std::vector<LevelPicture> levels;
};

/// A level that is drawn as a row of slots.
struct Strip {
  LevelPicture level;
};

/// A box with a text in a row of boxes.
struct Box {
  std::string text;
  bool is_ours = false;   // belongs to the timer of the example
  bool is_faded = false;  // is a copy that does not count
};

/// A row of boxes: a list, an array or a table.
struct Boxes {
  std::string name;
  std::vector<Box> boxes;
};

using PictureRow = std::variant<Dials, Strip, Boxes>;

/// A state of the queue. The figure numbers its moments.
struct Moment {
  std::string title;
  std::vector<PictureRow> rows;
  std::string caption;
};

struct Figure {
  std::string title;
  std::string description;  // for readers who do not see the figure
  detent::Tick ours = 0;    // the deadline to highlight
  std::vector<Moment> moments{};
};

enum class Language { english, chinese };

/// Returns the content of the SVG file, whose figure has texts in `language`. The same figure gives
/// the same text on every machine.
std::string draw(const Figure& figure, Language language);
