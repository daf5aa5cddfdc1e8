// A page of a list of queues: sorted by a count, and filtered by state.
//
// A page ends with a cursor: the sort key and the name of its last queue. The next page continues
// behind this position. If counts change between two pages, a queue can be on both pages or on
// neither. A list by name has each queue exactly once. A single server and the gateway of a cluster
// use the same code, so their pages and cursors are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/task_stats.h"

namespace detent {

/// Names sort upwards, and numbers downwards. `tasks` is the sum of the four counts.
enum class QueueSort : std::uint8_t { name, scheduled, ready, leased, dead, tasks };

/// `paused` is a setting. `empty` is a queue without tasks. The other states mean that a queue has
/// tasks in this state.
enum class QueueState : std::uint8_t { paused, scheduled, ready, leased, dead, empty };

/// The position of a queue in a list.
struct QueuePlace {
  std::uint64_t key = 0;  // 0 in a list by name
  std::string queue;

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
};

struct QueuePageRequest {
  QueueSort sort = QueueSort::name;
  std::optional<QueueState> state;  // empty: queues in any state
  std::uint64_t limit = 0;
  std::optional<QueuePlace> after;  // empty: the first page

  /// Reads the texts of the parameters; no value: absent. Errors: invalid_argument.
  static Result<QueuePageRequest> read(const std::optional<std::string>& sort,
                                       const std::optional<std::string>& state,
                                       const std::optional<std::string>& cursor,
                                       std::uint64_t limit);
};

/// Whether a queue is in this state. `paused` is the setting of the queue.
bool is_in_state(const QueueStats& stats, bool paused, QueueState state) noexcept;

/// The cursor of the page after this queue.
std::string cursor_after(const QueueStats& last, const QueuePageRequest& request);
/// Keeps the queues of the page, in order. Returns the cursor of the next page, or "" if the list
/// ends here. The state is not checked. O(queues).
std::string keep_page(std::vector<QueueStats>& queues, const QueuePageRequest& request);

}  // namespace detent
