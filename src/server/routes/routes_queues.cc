// The routes of queues: their settings and counts, and the verbs over a whole queue.
//
// A purge or a redrive runs in steps. Each step is one command to the engine that changes at most a
// thousand tasks. The answer to a step posts the next step, behind all commands that wait for the
// engine. A queue of millions of tasks therefore does not delay other requests, and each step is
// durable by itself.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json/queue_codec.h"
#include "server/http/query.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"
#include "task/largest_queues.h"
#include "task/limits.h"
#include "task/queue_page.h"

namespace detent::server {
namespace {

/// Tasks changed by one step.
constexpr std::size_t kStepTasks = 1'000;

/// Which queues are listed.
struct QueueFilter {
  std::string name;  // part of the name, ignoring the case of ASCII letters
  std::optional<QueuePageRequest> page;
  // Without a page:
  std::uint64_t limit = 0;  // so many, the first by the order
  QueueOrder order = QueueOrder::by_tasks;
};

Result<QueueFilter> read_filter(std::string_view target) {
  constexpr std::uint64_t kMostQueues = 1'000'000;
  QueryParameter limit{"limit"};
  QueryParameter name{"name"};
  QueryParameter by{"by"};
  QueryParameter sort{"sort"};
  QueryParameter state{"state"};
  QueryParameter cursor{"cursor"};
  const std::array<QueryParameter*, 6> parameters{&limit, &name, &by, &sort, &state, &cursor};
  TRY(take_query(target, parameters));
  QueueFilter filter{.name = name.value.value_or("")};
  if (!sort.value && !state.value && !cursor.value) {
    ASSIGN_OR_RETURN(filter.limit, read_count(limit, kMostQueues, kMostQueues));
    ASSIGN_OR_RETURN(filter.order, read_queue_order(by));
    return filter;
  }
  if (by.value) {
    return Error{ErrorCode::invalid_argument, "by cannot be given with sort, state or cursor",
                 "by"};
  }
  ASSIGN_OR_RETURN(const std::uint64_t most, read_count(limit, kMaxPage, kDefaultPage));
  ASSIGN_OR_RETURN(filter.page,
                   QueuePageRequest::read(sort.value, state.value, cursor.value, most));
  return filter;
}

bool has_part(std::string_view name, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  const auto is_same = [&](char a, char b) { return lower(a) == lower(b); };
  return part.empty() ||
         std::search(name.begin(), name.end(), part.begin(), part.end(), is_same) != name.end();
}

/// Whether the name has the part of the filter, and the caller may look at the queue.
bool may_show(const QueueStats& queue, const Caller& caller, const QueueFilter& filter) {
  return has_part(queue.queue, filter.name) && caller.may(Need::look, queue.queue);
}

/// The figures of those that the filter wants and the caller may look at.
std::vector<QueueStats> pick_queues(const Engine& engine, const Caller& caller,
                                    const QueueFilter& filter) {
  const bool is_any = filter.name.empty() && caller.may(Need::look_all, "");
  if (is_any && filter.order == QueueOrder::by_age) return engine.oldest_queues(filter.limit);
  if (is_any) return engine.stats(filter.limit).queues;
  std::vector<QueueStats> queues = engine.stats().queues;
  std::erase_if(queues, [&](const QueueStats& queue) { return !may_show(queue, caller, filter); });
  keep_first(queues, filter.order, filter.limit);
  return queues;
}

/// The queues of a page. Sets the cursor of the next page. A page by name begins behind its cursor,
/// and ends one queue after the page. Other orders look at all queues.
Result<std::vector<QueueStats>> pick_page(const Engine& engine, const Caller& caller,
                                          const QueueFilter& filter, std::string& cursor) {
  const QueuePageRequest& page = *filter.page;
  const bool is_by_name = page.sort == QueueSort::name;
  const std::string after = is_by_name && page.after ? page.after->queue : "";
  std::vector<QueueStats> queues;
  TRY(engine.visit_queues(after, [&](const QueueStats& queue, bool is_paused) {
    const bool is_wanted = may_show(queue, caller, filter) &&
                           (!page.state || is_in_state(queue, is_paused, *page.state));
    if (is_wanted) queues.push_back(queue);
    return !is_by_name || queues.size() <= page.limit;
  }));
  cursor = keep_page(queues, page);
  return queues;
}

struct QueueList {
  std::vector<QueueView> queues;
  std::optional<std::string> cursor;  // of a page; "" on the last page
};

Result<QueueList> list_of(const Engine& engine, const Caller& caller, const QueueFilter& filter) {
  QueueList list;
  std::vector<QueueStats> picked;
  if (filter.page) {
    ASSIGN_OR_RETURN(picked, pick_page(engine, caller, filter, list.cursor.emplace()));
  } else {
    picked = pick_queues(engine, caller, filter);
  }
  for (const QueueStats& stats : picked) {
    Result<QueueView> view = engine.queue(stats.queue);
    if (!view && view.error().code == ErrorCode::not_found) continue;  // workers wait for it only
    if (!view) return view.error();
    list.queues.push_back(*std::move(view));
  }
  return list;
}

/// Changes settings of a queue, which is made when it is not there.
Result<QueueView> change(Engine& engine, const std::string& name, const json::QueuePatch& patch) {
  const Result<QueueView> before = engine.queue(name);
  if (!before && before.error().code != ErrorCode::not_found) return before.error();
  const QueueSettings settings = before ? before->settings : QueueSettings{};
  TRY(engine.set_queue(name, patch.applied_to(settings)));
  return engine.queue(name);
}

/// The error that ended a verb over a whole queue, with how far it came.
Error stopped_after(std::uint64_t count, Error error) {
  if (count > 0) error.message += "; " + std::to_string(count) + " tasks were changed";
  return error;
}

void answer_queue(const HttpReply& reply, const QueueView& view) {
  reply.send_json(200, json::render_queue(view));
}

}  // namespace

void Routes::list_queues(const Call& call) {
  Result<QueueFilter> filter = read_filter(call.request.target);
  if (!filter) return call.reply.send_error(filter.error());
  run(
      call.reply,
      [caller = call.caller, filter = *std::move(filter)](Engine& engine) {
        return list_of(engine, caller, filter);
      },
      [](const HttpReply& reply, const QueueList& list) {
        reply.send_json(200, json::render_queues(list.queues, list.cursor));
      });
}

void Routes::get_queue(const Call& call) {
  run(
      call.reply, [name = call.parameters.front()](Engine& engine) { return engine.queue(name); },
      answer_queue, for_queue(call.parameters.front()));
}

void Routes::change_queue(const Call& call) {
  const Result<json::QueuePatch> patch = json::parse_queue_patch(call.request.body);
  if (!patch) return call.reply.send_error(patch.error());
  run(
      call.reply,
      [name = call.parameters.front(), patch = *patch](Engine& engine) {
        return change(engine, name, patch);
      },
      answer_queue, for_queue(call.parameters.front()));
}

void Routes::remove_queue(const Call& call) {
  const auto remove = [name = call.parameters.front()](Engine& engine) -> Result<std::string> {
    TRY(engine.remove_queue(name));
    return name;
  };
  const auto answer = [](const HttpReply& reply, const std::string& name) {
    reply.send_json(200, json::render_removed_queue(name));
  };
  run(call.reply, remove, answer, for_queue(call.parameters.front()));
}

void Routes::pause_queue(const Call& call) { set_paused(call, {.paused = true}); }
void Routes::resume_queue(const Call& call) { set_paused(call, {.paused = false}); }

/// Unlike any other change of settings this makes no queue: a misspelt name is told.
void Routes::set_paused(const Call& call, const json::QueuePatch& patch) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  const auto set = [name = call.parameters.front(), patch](Engine& engine) -> Result<QueueView> {
    TRY(engine.queue(name));
    return change(engine, name, patch);
  };
  run(call.reply, set, answer_queue, for_queue(call.parameters.front()));
}

void Routes::purge_queue(const Call& call) { sweep(call, &Engine::purge); }
void Routes::redrive_queue(const Call& call) { sweep(call, &Engine::redrive); }

void Routes::sweep(const Call& call, QueueVerb verb) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  step({.reply = call.reply, .verb = verb, .queue = call.parameters.front()});
}

void Routes::step(const Sweep& sweep) {
  run(
      sweep.reply,
      [sweep](Engine& engine) -> Result<QueueStep> {
        if (const auto going = engine.expect_going_on(); !going) {
          return stopped_after(sweep.count, going.error());
        }
        return (engine.*sweep.verb)(sweep.queue, kStepTasks, sweep.from);
      },
      [this, sweep](const HttpReply& reply, const QueueStep& done) {
        const std::uint64_t count = sweep.count + done.count;
        if (!done.next) return reply.send_json(200, json::render_count(count));
        Sweep rest = sweep;
        rest.from = *done.next;
        rest.count = count;
        step(rest);
      },
      for_queue(sweep.queue));
}

}  // namespace detent::server
