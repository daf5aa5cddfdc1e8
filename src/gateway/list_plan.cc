#include "gateway/list_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "gateway/fan_out.h"
#include "net/message/http_query.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/list_cursor.h"
#include "task/lifecycle.h"

namespace detent::gateway {
namespace {

using json::ListCursor;
using json::ListPart;

/// A page ends after so many bytes, as each shard's does.
constexpr std::size_t kPageBytes = std::size_t{4} << 20;

/// In the first round, each shard is asked for twice its even share of a page, and for a few more
/// tasks. A page therefore costs about two pages of a single server, however many shards there are,
/// unless few shards have most tasks.
constexpr std::uint64_t kSpareTasks = 10;
/// In later rounds, the shards with too few tasks are asked for the whole remainder. After this
/// number of rounds, an incomplete page is sent.
constexpr int kRounds = 3;

/// Where the list of the cluster goes on.
struct Position {
  ListCursor cursor;      // in the shard's list; of the live ones: in every shard's
  ShardNumber shard = 0;  // of the dead and the ended: those before it have no more of them
};

std::string render_position(const Position& position) {
  std::string text = json::render_cursor(position.cursor);
  if (position.cursor.part != ListPart::live) text += "." + std::to_string(position.shard);
  return text;
}

/// Returns no value if the text did not come from render_position().
std::optional<Position> parse_position(std::string_view text, ShardNumber shards) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const std::optional<ListCursor> cursor = json::parse_cursor(text.substr(0, dot));
  if (!cursor) return std::nullopt;
  Position position{.cursor = *cursor};
  const std::string_view shard = text.substr(std::min(dot + 1, text.size()));
  std::from_chars(shard.data(), shard.data() + shard.size(), position.shard);
  if (position.shard >= shards || render_position(position) != text) return std::nullopt;
  return position;
}

/// The place where the list of one shard continues; no value: the list is over.
std::optional<ListCursor> start_in(ShardNumber shard, const Position& position) noexcept {
  const ListPart part = position.cursor.part;
  if (part == ListPart::live || shard == position.shard) return position.cursor;
  if (shard > position.shard) return ListCursor{.part = part};
  if (part == ListPart::dead) return ListCursor{.part = ListPart::live};
  return std::nullopt;
}

/// Where a task is in the list of the cluster.
struct Rank {
  ListPart part = ListPart::dead;
  std::uint64_t major = 0;  // the due time in milliseconds since 1970, or the shard
  std::uint64_t minor = 0;  // the id, or where in the shard's page

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

constexpr Rank kEnd{.part = ListPart::ended, .major = kLast, .minor = kLast};

Rank rank_of_live(WallTime due_at, TaskId id) noexcept {
  const auto due = static_cast<std::uint64_t>(due_at.time_since_epoch().count());
  return {.part = ListPart::live, .major = due, .minor = id.value};
}

/// Of the last task that a page may hold if the list of this shard goes on at `next`.
Rank rank_before(ShardNumber shard, const ListCursor& next) noexcept {
  if (next.part == ListPart::live) return rank_of_live(next.at, next.id);
  return {.part = next.part, .major = shard, .minor = kLast};
}

struct ListedTask {
  Rank rank;
  std::string text;
};

ListPart part_of(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
    case TaskState::ready:
    case TaskState::leased:
      return ListPart::live;
    case TaskState::dead:
      return ListPart::dead;
    case TaskState::completed:
    case TaskState::cancelled:
      return ListPart::ended;
  }
  return ListPart::live;  // only for a value that is no enumerator
}

Result<ListedTask> read_task(const json::JsonValue& task, ShardNumber shard, std::size_t index) {
  json::JsonField id{"id"};
  json::JsonField state{"state"};
  json::JsonField due_at{"due_at"};
  const std::array fields{&id, &state, &due_at};
  TRY(json::take_fields(task, fields, json::UnknownFields::skip));
  ASSIGN_OR_RETURN(const std::string id_text, json::read_string(id));
  ASSIGN_OR_RETURN(const std::string state_text, json::read_string(state));
  ASSIGN_OR_RETURN(const WallTime due, json::read_time(due_at));
  const std::optional<TaskId> known_id = parse_task_id(id_text);
  const std::optional<TaskState> known_state = parse_task_state(state_text);
  if (!known_id || !known_state) {
    return Error{ErrorCode::internal,
                 "unexpected answer from a shard: a task has no id or no state", ""};
  }
  const ListPart part = part_of(*known_state);
  const Rank rank = part == ListPart::live ? rank_of_live(due, *known_id)
                                           : Rank{.part = part, .major = shard, .minor = index};
  return ListedTask{rank, std::string(task.text)};
}

/// The known part of the list of one shard.
struct ShardList {
  ShardNumber shard = 0;
  ListCursor start;
  std::vector<ListedTask> tasks = {};  // from there on
  std::optional<ListCursor> next;      // after these tasks; no value: the list is over
};

/// Appends the shard's answer to a question that started at `list.next`.
Result<void> take_page(std::string_view body, ShardList& list) {
  json::JsonDocument document;
  json::JsonField tasks{"tasks"};
  json::JsonField next{"cursor"};
  const std::array fields{&tasks, &next};
  TRY(json::take_fields(document, body, fields, json::UnknownFields::skip));
  if (!tasks.is(json::JsonKind::array)) return json::wrong_field(tasks, "an array");
  for (const json::JsonValue& element : *tasks.value) {
    ASSIGN_OR_RETURN(ListedTask task, read_task(element, list.shard, list.tasks.size()));
    list.tasks.push_back(std::move(task));
  }
  ASSIGN_OR_RETURN(const std::string cursor, json::read_cursor(next));
  list.next = json::parse_cursor(cursor);
  if (list.next || cursor.empty()) return ok();
  return Error{ErrorCode::internal,
               "unexpected answer from a shard: the cursor '" + cursor + "' is malformed",
               "cursor"};
}

/// A page of the cluster's list while it is made.
struct Listing {
  net::HttpRequest request;
  ShardNumber shards = 0;
  std::uint64_t limit = 0;
  std::vector<ShardList> lists = {};  // those that are not over where the page begins; by shard
  int rounds = 0;                     // of questions so far
};

/// The list's own parameters, as they were sent, and room for limit and cursor.
std::string target_without_place(std::string_view target) {
  return target_without(target, {"limit", "cursor"});
}

using TaskOrder = std::vector<const ListedTask*>;

std::string render(const TaskOrder& tasks, const std::optional<Position>& next) {
  std::string body;
  std::size_t size = 0;
  for (const ListedTask* task : tasks) size += task->text.size() + 1;
  body.reserve(size + 100);
  json::JsonWriter writer(body);
  writer.begin_object().name("tasks").begin_array();
  for (const ListedTask* task : tasks) writer.raw(task->text);
  writer.end_array().name("cursor").string_or_null(next ? render_position(*next) : "");
  writer.end_object();
  return body;
}

/// The place after a task that is followed by a task of another shard or of another part. `list` is
/// the list of the task's shard. Returns no value if more tasks of this shard follow; then only the
/// shard knows the place.
std::optional<Position> place_behind(const Rank& rank, const ShardList& list, ShardNumber shards) {
  const auto [part, major, minor] = rank;
  if (part == ListPart::live) {
    const WallTime due{std::chrono::milliseconds{major}};
    return Position{.cursor = {.part = part, .at = due, .id = TaskId{minor}}};
  }
  const bool is_amid = minor + 1 < list.tasks.size() && list.tasks[minor + 1].rank.part == part;
  if (is_amid) return std::nullopt;
  const auto next_shard = static_cast<ShardNumber>(major + 1);
  if (next_shard < shards) return Position{.cursor = {.part = part}, .shard = next_shard};
  DETENT_CHECK(part == ListPart::dead);  // no task follows the last ended task
  return Position{.cursor = {.part = ListPart::live}};
}

/// How many of these tasks a page holds, and whether it is full then.
struct Room {
  std::size_t count = 0;
  bool is_full = false;
};

Room room_for(std::span<const ListedTask* const> tasks, std::uint64_t limit) noexcept {
  Room room;
  for (std::size_t bytes = 0; room.count < tasks.size() && !room.is_full; ++room.count) {
    bytes += tasks[room.count]->text.size();
    room.is_full = room.count + 1 == limit || bytes >= kPageBytes;
  }
  return room;
}

/// To ask a shard for so many more tasks.
struct Question {
  std::size_t list = 0;  // index in Listing::lists
  std::uint64_t limit = 0;
};

Result<Step> go_on(Listing listing, const Answers& answers);

Plan ask(Listing listing, std::vector<Question> questions) {
  const std::string target = target_without_place(listing.request.target);
  std::vector<Part> parts;
  for (const Question& question : questions) {
    const ShardList& list = listing.lists[question.list];
    std::string page = target + "limit=" + std::to_string(question.limit);
    page.append("&cursor=").append(json::render_cursor(list.next.value_or(list.start)));
    parts.push_back({list.shard, as_get(listing.request, std::move(page))});
  }
  ++listing.rounds;
  return to_each(std::move(parts),
                 [listing = std::move(listing), questions = std::move(questions)](
                     const Answers& answers) mutable -> Result<Step> {
                   for (std::size_t i = 0; i < answers.size(); ++i) {
                     TRY(take_page(answers[i].body, listing.lists[questions[i].list]));
                   }
                   return go_on(std::move(listing), answers);
                 });
}

/// Those that hold the page back: it has room for so many more than is known of their lists.
std::vector<Question> missing(const Listing& listing, const TaskOrder& tasks, std::uint64_t room) {
  const Rank last = tasks.size() < listing.limit ? kEnd : tasks[listing.limit - 1]->rank;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < listing.lists.size(); ++i) {
    const ShardList& list = listing.lists[i];
    if (list.next && rank_before(list.shard, *list.next) < last) questions.push_back({i, room});
  }
  return questions;
}

/// Makes a page of the known tasks, or asks for more tasks.
Result<Step> go_on(Listing listing, const Answers& answers) {
  TaskOrder tasks;
  Rank end = kEnd;
  std::optional<Position> next;  // after `end`; all tasks before it are known
  for (const ShardList& list : listing.lists) {
    for (const ListedTask& task : list.tasks) tasks.push_back(&task);
    if (!list.next || !(rank_before(list.shard, *list.next) < end)) continue;
    end = rank_before(list.shard, *list.next);
    next = Position{.cursor = *list.next};
    if (list.next->part != ListPart::live) next->shard = list.shard;
  }
  const auto rank_of = [](const ListedTask* task) { return task->rank; };
  std::ranges::sort(tasks, {}, rank_of);
  const auto known =
      static_cast<std::size_t>(std::ranges::upper_bound(tasks, end, {}, rank_of) - tasks.begin());
  const Room room = room_for(std::span(tasks).first(known), listing.limit);
  if (!room.is_full && next && listing.rounds < kRounds) {
    std::vector<Question> questions = missing(listing, tasks, listing.limit - room.count);
    return Step(ask(std::move(listing), std::move(questions)));
  }
  tasks.resize(room.count);
  if (room.count < known) {
    const Rank last = tasks.back()->rank;
    const auto own = std::ranges::find(listing.lists, last.major, &ShardList::shard);
    // Of a live one the shard is not known, and its list not needed.
    ShardList& list = last.part == ListPart::live ? listing.lists.front() : *own;
    next = place_behind(last, list, listing.shards);
    if (!next) {
      list.tasks.clear();
      list.next = list.start;
      const auto index = static_cast<std::size_t>(&list - listing.lists.data());
      return Step(ask(std::move(listing), {{.list = index, .limit = last.minor + 1}}));
    }
  }
  return Step(joined(answers, render(tasks, next)));
}

}  // namespace

Plan plan_task_list(net::HttpRequest request, const ShardMap& map) {
  const ShardNumber shards = map.shards;
  net::QueryParameter queue{"queue"};
  net::QueryParameter limit{"limit"};
  net::QueryParameter cursor{"cursor"};
  net::QueryParameter state{"state"};
  net::QueryParameter key{"key"};
  net::QueryParameter due_after{"due_after"};
  net::QueryParameter due_before{"due_before"};
  const std::array<net::QueryParameter*, 7> parameters{&queue, &limit,     &cursor,    &state,
                                                       &key,   &due_after, &due_before};
  const Result<void> taken = net::take_query(request.target, parameters);
  const Result<std::uint64_t> most = net::read_count(limit, kMaxPage, kDefaultPage);
  if (!taken || !most) return to_shard(std::move(request), 0);  // which refuses it
  if (queue.value && map.partitions_of(*queue.value) == 1) {
    return to_shard(std::move(request), map.home_of(*queue.value));
  }
  std::optional<Position> from = Position{};
  if (cursor.value) from = parse_position(*cursor.value, shards);
  if (!from) {
    request.target = target_without_place(request.target) + "cursor=";
    return to_shard(std::move(request), 0);  // which refuses that
  }
  Listing listing{.request = std::move(request), .shards = shards, .limit = *most};
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    const std::optional<ListCursor> start = start_in(shard, *from);
    if (start) listing.lists.push_back({.shard = shard, .start = *start, .next = *start});
  }
  const std::uint64_t share = std::min(*most, 2 * *most / listing.lists.size() + kSpareTasks);
  std::vector<Question> questions;
  for (std::size_t i = 0; i < listing.lists.size(); ++i) questions.push_back({i, share});
  return ask(std::move(listing), std::move(questions));
}

}  // namespace detent::gateway
