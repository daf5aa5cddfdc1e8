// The list of tasks. A page is filled in steps. Each step is one command to the engine that reads
// at most a few hundred records, and other requests are served between the steps. After a fixed
// number of steps, an incomplete page is sent together with the place where the list continues.
#include <algorithm>
#include <array>
#include <utility>

#include "protocol/json/answer_codec.h"
#include "server/http/list_cursor.h"
#include "server/http/query.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

constexpr int kListSteps = 100;
constexpr std::size_t kListBytes = std::size_t{4} << 20;

Error wrong(std::string_view name, std::string_view allowed) {
  return {ErrorCode::invalid_argument, std::string(name) + " must be " + std::string(allowed),
          std::string(name)};
}

struct ListRequest {
  TaskFilter filter;
  std::uint64_t limit = 0;
  Place after = kListStart;
};

/// `seal` seals the caller's cursors; null: they are not sealed.
Result<ListRequest> read_list_request(std::string_view target, const CursorSeal* seal) {
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
  ASSIGN_OR_RETURN(request.limit, read_count(limit, kMaxPage, kDefaultPage));
  if (cursor.value) {
    const std::optional<Place> place =
        seal != nullptr ? seal->open(*cursor.value) : parse_cursor(*cursor.value);
    if (!place)
      return wrong("cursor", "the \"cursor\" value of an earlier page of this list, unchanged");
    request.after = *place;
  }
  return request;
}

std::string cursor_of(const std::optional<Place>& next, const CursorSeal* seal) {
  if (!next) return "";
  return seal != nullptr ? seal->seal(*next) : render_cursor(*next);
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
  const bool is_open = options_.is_shard || call.caller.may(Need::look_all, "");
  const CursorSeal* const seal = is_open ? nullptr : &seal_;
  Result<ListRequest> request = read_list_request(call.request.target, seal);
  if (!request) return call.reply.send_error(request.error());
  const std::optional<std::string>& queue = request->filter.queue;
  if (queue && !call.caller.may(Need::look, *queue)) {
    return call.reply.send_error(forbidden(Need::look, *queue));
  }
  list_step({.reply = call.reply,
             .caller = call.caller,
             .seal = seal,
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
              200, json::render_task_list(listing.tasks, cursor_of(found.next, listing.seal)));
        }
        listing.after = *found.next;
        list_step(std::move(listing));
      });
}

}  // namespace detent::server
