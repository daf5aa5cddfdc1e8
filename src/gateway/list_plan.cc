#include "gateway/list_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "gateway/fan_out.h"
#include "net/http_query.h"
#include "net/route_table.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/list_cursor.h"
#include "protocol/json/read_answer.h"
#include "task/lifecycle.h"

namespace detent::gateway {
namespace {

using json::ListCursor;
using json::ListPart;

/// A page ends after so many bytes, as each shard's does.
constexpr std::size_t kPageBytes = std::size_t{4} << 20;

/// Where the list of the cluster goes on.
struct Position {
  ListCursor cursor;      // in the shard's list; of the live ones: in every shard's
  ShardNumber shard = 0;  // of the dead and the ended: those before it have no more of them

  friend bool operator==(const Position&, const Position&) = default;
};

std::string render_position(const Position& position) {
  std::string text = json::render_cursor(position.cursor);
  if (position.cursor.part != ListPart::live) text += "." + std::to_string(position.shard);
  return text;
}

/// Nothing when render_position() did not write it.
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

/// Where the list of one shard goes on; nothing: it is over.
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
  std::string_view text;
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

Result<ListedTask> read_task(std::string_view text, ShardNumber shard, std::size_t index) {
  json::JsonField id{"id"};
  json::JsonField state{"state"};
  json::JsonField due_at{"due_at"};
  const std::array<json::JsonField*, 3> fields{&id, &state, &due_at};
  TRY(json::take_fields(text, fields, json::UnknownFields::skip));
  ASSIGN_OR_RETURN(const std::string id_text, json::read_string(id));
  ASSIGN_OR_RETURN(const std::string state_text, json::read_string(state));
  ASSIGN_OR_RETURN(const WallTime due, json::read_time(due_at));
  const std::optional<TaskId> known_id = parse_task_id(id_text);
  const std::optional<TaskState> known_state = parse_task_state(state_text);
  if (!known_id || !known_state)
    return Error{ErrorCode::internal, "a task without id or state", ""};
  const ListPart part = part_of(*known_state);
  if (part == ListPart::live) return ListedTask{rank_of_live(due, *known_id), text};
  return ListedTask{{.part = part, .major = shard, .minor = index}, text};
}

/// What a shard answered.
struct Page {
  std::vector<ListedTask> tasks;   // point into the answer
  std::optional<ListCursor> next;  // none: its list is over
};

Result<Page> read_page(std::string_view body, ShardNumber shard) {
  ASSIGN_OR_RETURN(const auto elements, json::take_list(body, "tasks"));
  Page page;
  page.tasks.reserve(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ASSIGN_OR_RETURN(const ListedTask task, read_task(elements[i], shard, i));
    page.tasks.push_back(task);
  }
  ASSIGN_OR_RETURN(const std::string cursor, json::read_cursor(body));
  if (cursor.empty()) return page;
  page.next = json::parse_cursor(cursor);
  if (!page.next) return Error{ErrorCode::internal, "no place in a list: " + cursor, "cursor"};
  return page;
}

/// A page of the cluster's list while it is made.
struct Listing {
  net::HttpRequest request;
  ShardNumber shards = 0;
  std::uint64_t limit = 0;
  Position from;
  std::vector<ShardNumber> asked = {};  // all whose list is not over there
};

/// The list's own parameters, as they were sent, and room for limit and cursor.
std::string target_without_place(std::string_view target) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  std::string kept(target.substr(0, mark));
  kept.push_back('?');
  std::string_view rest = target.substr(std::min(mark + 1, target.size()));
  while (!rest.empty()) {
    const std::string_view parameter = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(parameter.size() + 1, rest.size()));
    const auto name = net::percent_decode(parameter.substr(0, parameter.find('=')));
    if (name == "limit" || name == "cursor") continue;
    kept.append(parameter).push_back('&');
  }
  return kept;
}

std::string render(const std::vector<ListedTask>& tasks, const std::optional<Position>& next) {
  std::string body;
  std::size_t size = 0;
  for (const ListedTask& task : tasks) size += task.text.size() + 1;
  body.reserve(size + 100);
  json::JsonWriter writer(body);
  writer.begin_object().name("tasks").begin_array();
  for (const ListedTask& task : tasks) writer.raw(task.text);
  writer.end_array().name("cursor").string_or_null(next ? render_position(*next) : "");
  writer.end_object();
  return body;
}

/// Asks a shard for so many tasks.
Part ask(const Listing& listing, ShardNumber shard, std::uint64_t limit) {
  const ListCursor from = start_in(shard, listing.from).value_or(ListCursor{});
  std::string target = target_without_place(listing.request.target);
  target.append("limit=").append(std::to_string(limit));
  target.append("&cursor=").append(json::render_cursor(from));
  return {.shard = shard, .request = as_get(listing.request, std::move(target))};
}

/// Where the list goes on behind a task of `page`, the one that another shard's tasks follow.
/// Nothing: that is amid those of this shard, and only the shard knows the place.
std::optional<Position> place_behind(const ListedTask& last, const Page& page, ShardNumber shards) {
  const auto [part, major, minor] = last.rank;
  if (part == ListPart::live) {
    const WallTime due{std::chrono::milliseconds{major}};
    return Position{.cursor = {.part = part, .at = due, .id = TaskId{minor}}};
  }
  const bool is_amid = minor + 1 < page.tasks.size() && page.tasks[minor + 1].rank.part == part;
  if (is_amid) return std::nullopt;
  const auto next_shard = static_cast<ShardNumber>(major + 1);
  if (next_shard == shards) return Position{.cursor = {.part = ListPart::live}};
  return Position{.cursor = {.part = part}, .shard = next_shard};
}

/// How many of the tasks a page holds: one at least, if there is one.
std::size_t room_for(const std::vector<ListedTask>& tasks, std::uint64_t limit) noexcept {
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < tasks.size() && count < limit && bytes < kPageBytes;
       ++count) {
    bytes += tasks[count].text.size();
  }
  return count;
}

/// Makes a page of the answers of the shards asked.
Result<Step> merge(const Listing& listing, Answers answers) {
  std::vector<ListedTask> tasks;
  std::vector<Page> pages;
  Rank end{.part = ListPart::ended, .major = kLast, .minor = kLast};
  std::optional<Position> next;  // behind `end`
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ShardNumber shard = listing.asked[i];
    ASSIGN_OR_RETURN(Page page, read_page(answers[i].body, shard));
    std::ranges::copy(page.tasks, std::back_inserter(tasks));
    if (page.next && rank_before(shard, *page.next) < end) {
      end = rank_before(shard, *page.next);
      next = Position{.cursor = *page.next, .shard = shard};
      if (page.next->part == ListPart::live) next->shard = 0;
    }
    pages.push_back(std::move(page));
  }
  std::erase_if(tasks, [end](const ListedTask& task) { return end < task.rank; });
  std::ranges::sort(tasks, {}, &ListedTask::rank);
  if (const std::size_t room = room_for(tasks, listing.limit); room < tasks.size()) {
    tasks.resize(room);
    const ListedTask& last = tasks.back();
    // Of a live one the shard is not known, and the page not needed.
    const auto of = std::ranges::find(listing.asked, last.rank.major) - listing.asked.begin();
    const auto index = last.rank.part == ListPart::live ? 0 : static_cast<std::size_t>(of);
    next = place_behind(last, pages[index], listing.shards);
    if (!next) {
      const Part fewer = ask(listing, listing.asked[index], last.rank.minor + 1);
      return Step(to_each(
          {fewer},
          [listing, index, answers = std::move(answers)](Answers answer) mutable -> Result<Step> {
            answers[index] = std::move(answer.front());
            return merge(listing, std::move(answers));
          }));
    }
  }
  return Step(joined(answers, render(tasks, next)));
}

}  // namespace

Plan plan_task_list(net::HttpRequest request, ShardNumber shards) {
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
  if (!taken || !most) return to_shard(std::move(request), 0);
  if (queue.value) return to_shard(std::move(request), shard_of_queue(*queue.value, shards));
  std::optional<Position> from = Position{};
  if (cursor.value) from = parse_position(*cursor.value, shards);
  if (!from) {
    request.target = target_without_place(request.target) + "cursor=";
    return to_shard(std::move(request), 0);  // which refuses that
  }
  Listing listing{.request = std::move(request), .shards = shards, .limit = *most, .from = *from};
  std::vector<Part> parts;
  for (ShardNumber shard = 0; shard < shards; ++shard) {
    if (!start_in(shard, *from)) continue;
    listing.asked.push_back(shard);
    parts.push_back(ask(listing, shard, *most));
  }
  return to_each(std::move(parts), [listing = std::move(listing)](Answers answers) -> Result<Step> {
    return merge(listing, std::move(answers));
  });
}

}  // namespace detent::gateway
