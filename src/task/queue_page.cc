#include "task/queue_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace detent {
namespace {

constexpr std::array<std::string_view, 6> kSorts{"name",   "scheduled", "ready",
                                                 "leased", "dead",      "tasks"};
constexpr std::array<std::string_view, 6> kStates{"paused", "scheduled", "ready",
                                                  "leased", "dead",      "empty"};

std::string_view name_of(QueueSort sort) noexcept {
  return kSorts.at(static_cast<std::size_t>(sort));
}

/// The enumerator of T with this position in `names`.
template <class T, std::size_t n>
Result<T> read_word(std::string_view field, const std::string& text,
                    const std::array<std::string_view, n>& names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<T>(found - names.begin());
  std::string allowed;
  for (const std::string_view name : names) {
    if (!allowed.empty()) allowed += name == names.back() ? " or " : ", ";
    allowed += name;
  }
  return Error{ErrorCode::invalid_argument, std::string(field) + " must be " + allowed,
               std::string(field)};
}

std::uint64_t tasks_of(const QueueStats& stats) noexcept {
  return stats.scheduled + stats.ready + stats.leased + stats.dead;
}

std::uint64_t key_of(const QueueStats& stats, QueueSort sort) noexcept {
  switch (sort) {
    case QueueSort::name:
      return 0;
    case QueueSort::scheduled:
      return stats.scheduled;
    case QueueSort::ready:
      return stats.ready;
    case QueueSort::leased:
      return stats.leased;
    case QueueSort::dead:
      return stats.dead;
    case QueueSort::tasks:
      return tasks_of(stats);
  }
  return 0;
}

/// "ready:17:mail".
std::string render_cursor(QueueSort sort, const QueueStats& last) {
  return std::string(name_of(sort)) + ":" + std::to_string(key_of(last, sort)) + ":" + last.queue;
}

std::optional<QueuePlace> parse_cursor(QueueSort sort, std::string_view text) {
  if (!text.starts_with(name_of(sort))) return std::nullopt;
  text.remove_prefix(name_of(sort).size());
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  QueuePlace place;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, place.key);
  if (error != std::errc{} || rest == end || *rest != ':') return std::nullopt;
  place.queue.assign(rest + 1, end);
  return place;
}

}  // namespace

Result<QueuePageRequest> QueuePageRequest::read(const std::optional<std::string>& sort,
                                                const std::optional<std::string>& state,
                                                const std::optional<std::string>& cursor,
                                                std::uint64_t limit) {
  QueuePageRequest request{.limit = limit};
  if (sort) {
    ASSIGN_OR_RETURN(request.sort, read_word<QueueSort>("sort", *sort, kSorts));
  }
  if (state) {
    ASSIGN_OR_RETURN(request.state, read_word<QueueState>("state", *state, kStates));
  }
  if (cursor) {
    request.after = parse_cursor(request.sort, *cursor);
    if (!request.after) {
      return Error{ErrorCode::invalid_argument,
                   "cursor must be the \"cursor\" value of an earlier page with the same sort, "
                   "unchanged",
                   "cursor"};
    }
  }
  return request;
}

bool is_in_state(const QueueStats& stats, bool paused, QueueState state) noexcept {
  switch (state) {
    case QueueState::paused:
      return paused;
    case QueueState::scheduled:
      return stats.scheduled > 0;
    case QueueState::ready:
      return stats.ready > 0;
    case QueueState::leased:
      return stats.leased > 0;
    case QueueState::dead:
      return stats.dead > 0;
    case QueueState::empty:
      return tasks_of(stats) == 0;
  }
  return false;
}

std::string cursor_after(const QueueStats& last, const QueuePageRequest& request) {
  return render_cursor(request.sort, last);
}

std::string keep_page(std::vector<QueueStats>& queues, const QueuePageRequest& request) {
  const QueueSort sort = request.sort;
  const auto comes_before = [](std::uint64_t key, const std::string& name, std::uint64_t other_key,
                               const std::string& other_name) {
    return key != other_key ? key > other_key : name < other_name;
  };
  if (const std::optional<QueuePlace>& after = request.after) {
    std::erase_if(queues, [&](const QueueStats& queue) {
      return !comes_before(after->key, after->queue, key_of(queue, sort), queue.queue);
    });
  }
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(request.limit, queues.size()));
  std::partial_sort(queues.begin(), queues.begin() + kept, queues.end(),
                    [&](const QueueStats& one, const QueueStats& other) {
                      return comes_before(key_of(one, sort), one.queue, key_of(other, sort),
                                          other.queue);
                    });
  const bool has_more = static_cast<std::size_t>(kept) < queues.size();
  queues.resize(static_cast<std::size_t>(kept));
  return has_more && kept > 0 ? cursor_after(queues.back(), request) : "";
}

}  // namespace detent
