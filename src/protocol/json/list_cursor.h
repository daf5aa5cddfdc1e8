// The position of the next page in a list of tasks, as text. It is the `cursor` in answers and
// requests of `GET /v1/tasks`.
//
// The text is opaque to clients, but the servers of a cluster read each other's cursors: a list
// over several shards continues at its own position in each shard (gateway/list_plan.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "task/task.h"

namespace detent::json {

/// The parts of a list, in the order of the list.
enum class ListPart : std::uint8_t { dead, live, ended };

/// The next page begins after the task at this position.
struct ListCursor {
  ListPart part = ListPart::dead;
  std::uint32_t queue = 0;  // dead part only: the number that the store gave the queue
  WallTime at{};            // the due time of a live task; other parts also sort by a time
  TaskId id = {};           // 0 means before every task with this time

  friend bool operator==(const ListCursor&, const ListCursor&) = default;
};

/// Example: "l0-1767323075000-256" has the part's letter, and then `queue`, `at` and `id`.
std::string render_cursor(const ListCursor& cursor);
/// Returns nullopt if render_cursor() cannot have written the text.
std::optional<ListCursor> parse_cursor(std::string_view text);

}  // namespace detent::json
