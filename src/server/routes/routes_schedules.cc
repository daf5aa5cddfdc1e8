// The routes of recurring schedules. A back-fill goes in steps, as the verbs over a whole queue do
// (routes_queues.cc). It stops when its client goes away, the schedule is paused or removed, a task
// cannot be made, or the server stops. The answer then says how far it came.
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/wall_time.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/schedule_codec.h"
#include "server/http/query.h"
#include "server/routes/routes.h"
#include "server/routes/routes_run.h"

namespace detent::server {
namespace {

constexpr std::uint64_t kMostNext = 1'000;

/// Returns an unused schedule name, for a preview that must not count from an existing anchor.
std::string unused_name(const Engine& engine) {
  std::string name = "preview";
  while (engine.find_schedule(name)) name.push_back('-');
  return name;
}

void answer_view(const HttpReply& reply, const ScheduleView& view) {
  reply.send_json(200, json::render_schedule_view(view));
}

/// The error that ended a back-fill, with how far it came.
Error with_progress(Error error, const json::BackfillCounts& counts, WallTime next) {
  if (counts.made + counts.there == 0) return error;
  error.message += "; the back-fill created " + std::to_string(counts.made) +
                   " tasks (already there: " + std::to_string(counts.there) + "), continue from " +
                   format_rfc3339(next);
  return error;
}

}  // namespace

void Routes::list_schedules(const Call& call) {
  QueryParameter limit{"limit"};
  QueryParameter cursor{"cursor"};
  const std::array<QueryParameter*, 2> parameters{&limit, &cursor};
  if (const auto taken = take_query(call.request.target, parameters); !taken) {
    return call.reply.send_error(taken.error());
  }
  const Result<std::uint64_t> most = read_count(limit, kMaxPage, kDefaultPage);
  if (!most) return call.reply.send_error(most.error());
  run(
      call.reply,
      [after = cursor.value.value_or(""), most = *most](const Engine& engine) {
        return engine.schedules_after(after, most);
      },
      [most = *most](const HttpReply& reply, const std::vector<ScheduleView>& views) {
        const bool is_full = views.size() == most;
        const std::string next = is_full ? views.back().record.schedule.name : std::string();
        reply.send_json(200, json::render_schedule_list(views, next));
      });
}

void Routes::get_schedule(const Call& call) {
  run(
      call.reply,
      [name = call.parameters.front()](const Engine& engine) { return engine.find_schedule(name); },
      answer_view);
}

void Routes::put_schedule(const Call& call) {
  const Result<RecurringSchedule> schedule =
      json::parse_schedule_rule(call.parameters.front(), call.request.body);
  if (!schedule) return call.reply.send_error(schedule.error());
  run(
      call.reply, [schedule = *schedule](Engine& engine) { return engine.put_schedule(schedule); },
      [](const HttpReply& reply, const PutSchedule& put) {
        reply.send_json(put.was_there ? 200 : 201, json::render_schedule_view(put.view));
      });
}

void Routes::remove_schedule(const Call& call) {
  const auto remove = [name = call.parameters.front()](Engine& engine) -> Result<std::string> {
    TRY(engine.remove_schedule(name));
    return name;
  };
  run(call.reply, remove, [](const HttpReply& reply, const std::string& name) {
    reply.send_json(200, json::render_removed_schedule(name));
  });
}

void Routes::next_of_schedule(const Call& call) {
  QueryParameter count{"count"};
  const std::array<QueryParameter*, 1> parameters{&count};
  if (const auto taken = take_query(call.request.target, parameters); !taken) {
    return call.reply.send_error(taken.error());
  }
  const Result<std::uint64_t> most = read_count(count, kMostNext, 10);
  if (!most) return call.reply.send_error(most.error());
  const std::string& name = call.parameters.front();
  run(
      call.reply,
      [name, most = *most](const Engine& engine) { return engine.next_occurrences(name, most); },
      [name](const HttpReply& reply, const std::vector<WallTime>& next) {
        reply.send_json(200, json::render_next_occurrences(name, next));
      });
}

/// Previews a schedule, existing or not. A parameter `name` names an existing schedule, and an
/// interval then counts from the anchor of that schedule. The answer then shows this anchor, so
/// such a preview requires the permission to read schedules.
void Routes::preview_schedule(const Call& call) {
  QueryParameter count{"count"};
  QueryParameter name{"name"};
  const std::array<QueryParameter*, 2> parameters{&count, &name};
  if (const auto taken = take_query(call.request.target, parameters); !taken) {
    return call.reply.send_error(taken.error());
  }
  const Result<std::uint64_t> most = read_count(count, kMostNext, 10);
  if (!most) return call.reply.send_error(most.error());
  if (name.value) {
    const Result<void> allowed = call.caller.require(Need::look_all, "");
    if (!allowed) return call.reply.send_error(allowed.error());
  }
  const Result<RecurringSchedule> schedule =
      json::parse_schedule_rule(name.value.value_or("preview"), call.request.body);
  if (!schedule) return call.reply.send_error(schedule.error());
  run(
      call.reply,
      [schedule = *schedule, is_new = !name.value, most = *most](const Engine& engine) mutable {
        if (is_new) schedule.name = unused_name(engine);
        return engine.preview_schedule(schedule, most);
      },
      [](const HttpReply& reply, const SchedulePreview& preview) {
        reply.send_json(200, json::render_schedule_preview(preview));
      });
}

void Routes::pause_schedule(const Call& call) { change_schedule(call, &Engine::pause_schedule); }
void Routes::resume_schedule(const Call& call) { change_schedule(call, &Engine::resume_schedule); }

void Routes::change_schedule(const Call& call, ScheduleVerb verb) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  run(
      call.reply,
      [name = call.parameters.front(), verb](Engine& engine) { return (engine.*verb)(name); },
      answer_view);
}

void Routes::trigger_schedule(const Call& call) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  run(
      call.reply,
      [name = call.parameters.front()](Engine& engine) { return engine.trigger_schedule(name); },
      [](const HttpReply& reply, const TaskSnapshot& view) {
        reply.send({.status = 201,
                    .body = json::render_accepted(view),
                    .headers = {{"location", location_of(view.task.id)}}});
      });
}

void Routes::backfill_schedule(const Call& call) {
  const Result<json::BackfillRange> range = json::parse_backfill(call.request.body);
  if (!range) return call.reply.send_error(range.error());
  const Backfill backfill{.reply = call.reply,
                          .name = call.parameters.front(),
                          .range = *range,
                          .has_client_gone = std::make_shared<std::atomic<bool>>(false)};
  call.reply.on_gone([gone = backfill.has_client_gone] { *gone = true; });
  const auto check = [backfill](const Engine& engine) -> Result<Backfill> {
    TRY(engine.check_backfill(backfill.name, backfill.range.from, backfill.range.to));
    return backfill;
  };
  run(call.reply, check, [this](const HttpReply&, const Backfill& checked) { step(checked); });
}

void Routes::step(const Backfill& backfill) {
  const auto next = [backfill](Engine& engine) -> Result<BackfillStep> {
    if (*backfill.has_client_gone) {
      return Error{ErrorCode::unavailable, "the client went away", ""};
    }
    const json::BackfillRange& range = backfill.range;
    return engine.backfill(backfill.name, range.from, range.to, range.limit);
  };
  run_or(
      backfill.reply, next,
      [this, backfill](const HttpReply&, const BackfillStep& done) { go_on(backfill, done); },
      [backfill](const HttpReply& reply, const Error& error) {
        reply.send_error(with_progress(error, backfill.counts, backfill.range.from));
      });
}

/// Takes the next step, or answers.
void Routes::go_on(Backfill backfill, const BackfillStep& done) {
  backfill.counts.made += done.made;
  backfill.counts.there += done.there;
  backfill.counts.next = done.next;
  backfill.range.limit -= done.made + done.there;
  if (done.stop) {
    return backfill.reply.send_error(with_progress(*done.stop, backfill.counts, *done.next));
  }
  if (!done.next || backfill.range.limit == 0) {
    return backfill.reply.send_json(200, json::render_backfill_counts(backfill.counts));
  }
  backfill.range.from = *done.next;
  step(backfill);
}

}  // namespace detent::server
