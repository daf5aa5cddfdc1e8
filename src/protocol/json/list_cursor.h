// Where a list of tasks goes on, as text: `cursor` in what `GET /v1/tasks` answers and is asked
// with.
//
// Opaque to clients. Servers of a cluster read each other's: a list over several shards goes on in
// each of them at a place of its own (gateway/list_plan.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "task/task.h"

namespace detent::json {

/// The parts of a list, in its order.
enum class ListPart : std::uint8_t { dead, live, ended };

/// The list goes on behind the task at this place.
struct ListCursor {
  ListPart part = ListPart::dead;
  std::uint32_t queue = 0;  // of the dead: a number that the store gave it
  WallTime at{};            // of the live: when it is due
  TaskId id = {};           // 0: before every task at this instant

  friend bool operator==(const ListCursor&, const ListCursor&) = default;
};

/// "l0-1767323075000-256": the part, then the numbers.
std::string render_cursor(const ListCursor& cursor);
/// Nothing when render_cursor() did not write it.
std::optional<ListCursor> parse_cursor(std::string_view text);

}  // namespace detent::json
