// The list of tasks. A page is filled in steps, each one command to the engine that reads a few
// hundred records at most; others are served between them. A page that is still not full after so
// many steps goes out as it is, with the place where the list goes on.
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "protocol/json/answer_renderer.h"
#include "server/query.h"
#include "server/routes.h"
#include "server/routes_run.h"

namespace detent::server {
namespace {

constexpr std::uint64_t kMaxListTasks = 1'000;
constexpr std::uint64_t kListTasks = 100;
constexpr int kListSteps = 100;
constexpr std::size_t kListBytes = std::size_t{4} << 20;

/// The lanes in which a list may stand, as its cursor begins.
constexpr std::array<std::pair<char, Lane>, 3> kCursorLanes{
    {{'d', Lane::dead}, {'l', Lane::due}, {'e', Lane::ended}}};

/// A place of the list as text: its lane, then its numbers. Opaque to clients.
std::string render_cursor(Place place) {
  std::string text;
  for (const auto& [letter, lane] : kCursorLanes) {
    if (lane == place.lane) text.push_back(letter);
  }
  return text + std::to_string(place.queue) + "-" +
         std::to_string(place.at.time_since_epoch().count()) + "-" + std::to_string(place.id.value);
}

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return error == std::errc{};
}

bool take_dash(std::string_view& text) noexcept {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  return true;
}

/// Nothing when render_cursor() did not write it.
std::optional<Place> parse_cursor(std::string_view text) {
  Place place;
  const std::string_view all = text;
  bool is_lane = false;
  for (const auto& [letter, lane] : kCursorLanes) {
    if (!text.starts_with(letter)) continue;
    place.lane = lane;
    is_lane = true;
  }
  if (!is_lane) return std::nullopt;
  text.remove_prefix(1);
  std::int64_t at = 0;
  const bool is_whole = take_number(text, place.queue) && take_dash(text) &&
                        take_number(text, at) && take_dash(text) &&
                        take_number(text, place.id.value) && text.empty();
  if (!is_whole || at < 0 || (place.queue != 0 && place.lane != Lane::dead)) return std::nullopt;
  place.at = WallTime{std::chrono::milliseconds{at}};
  if (render_cursor(place) != all) return std::nullopt;
  return place;
}

Error wrong(std::string_view name, std::string_view allowed) {
  return {ErrorCode::invalid_argument, std::string(name) + " must be " + std::string(allowed),
          std::string(name)};
}

struct ListRequest {
  TaskFilter filter;
  std::uint64_t limit = 0;
  Place after = kListStart;
};

Result<ListRequest> read_list_request(std::string_view target) {
  QueryParameter queue{"queue"};
  QueryParameter state{"state"};
  QueryParameter key{"key"};
  QueryParameter due_after{"due_after"};
  QueryParameter due_before{"due_before"};
  QueryParameter limit{"limit"};
  QueryParameter cursor{"cursor"};
  const std::array<QueryParameter*, 7> parameters{&queue,      &state, &key,   &due_after,
                                                  &due_before, &limit, &cursor};
  TRY(take_query(target, parameters));
  ListRequest request;
  TaskFilter& filter = request.filter;
  if (queue.value && !is_queue_name(*queue.value)) return wrong("queue", "the name of a queue");
  filter.queue = queue.value;
  if (state.value) {
    filter.state = parse_task_state(*state.value);
    if (!filter.state) {
      return wrong("state", "scheduled, ready, leased, dead, completed or cancelled");
    }
  }
  if (key.value && (key.value->empty() || key.value->size() > kMaxKeyBytes)) {
    return wrong("key", "1 to " + std::to_string(kMaxKeyBytes) + " bytes long");
  }
  filter.key = key.value;
  ASSIGN_OR_RETURN(filter.due_after, read_time(due_after));
  ASSIGN_OR_RETURN(filter.due_before, read_time(due_before));
  ASSIGN_OR_RETURN(request.limit, read_count(limit, kMaxListTasks, kListTasks));
  if (cursor.value) {
    const std::optional<Place> place = parse_cursor(*cursor.value);
    if (!place) return wrong("cursor", "one that a page of this list had");
    request.after = *place;
  }
  return request;
}

Result<TaskList> list_and_show_rules(Engine& engine, const TaskFilter& filter, Place after,
                                     std::size_t limit) {
  ASSIGN_OR_RETURN(TaskList list, engine.list(filter, after, limit));
  Result<QueueView> queue = QueueView{};
  for (TaskSnapshot& view : list.tasks) {
    if (!queue || queue->stats.queue != view.task.queue) queue = engine.queue(view.task.queue);
    if (queue) show_rules_in_force(view.task.rules, queue->settings);
  }
  return list;
}

}  // namespace

void Routes::list_tasks(const Call& call) {
  Result<ListRequest> request = read_list_request(call.request.target);
  if (!request) return call.reply.send_error(request.error());
  const std::optional<std::string>& queue = request->filter.queue;
  if (queue && !call.caller.may(Need::look, *queue)) {
    return call.reply.send_error(forbidden(Need::look, *queue));
  }
  list_step({.reply = call.reply,
             .caller = call.caller,
             .filter = std::move(request->filter),
             .limit = request->limit,
             .after = request->after});
}

void Routes::list_step(Listing listing) {
  const HttpReply reply = listing.reply;
  const auto read = [filter = listing.filter, after = listing.after,
                     limit = listing.limit - listing.tasks.size()](Engine& engine) {
    return list_and_show_rules(engine, filter, after, limit);
  };
  run(reply, read,
      [this, listing = std::move(listing)](const HttpReply& to, TaskList& found) mutable {
        for (TaskSnapshot& view : found.tasks) {
          if (!listing.caller.may(Need::look, view.task.queue)) continue;
          listing.bytes += view.task.payload.data.size();
          listing.tasks.push_back(std::move(view));
        }
        const bool is_full = listing.tasks.size() == listing.limit || listing.bytes >= kListBytes ||
                             ++listing.steps == kListSteps;
        if (!found.next || is_full) {
          return to.send_json(
              200,
              json::render_task_list(listing.tasks, found.next ? render_cursor(*found.next) : ""));
        }
        listing.after = *found.next;
        list_step(std::move(listing));
      });
}

}  // namespace detent::server
