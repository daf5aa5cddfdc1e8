#include "server/cluster/node_changes.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/bytes.h"

namespace detent::server {
namespace {

std::string text_of(ChangePlace place) {
  return std::to_string(place.run) + "-" + std::to_string(place.number);
}

std::optional<ChangePlace> parse_place(std::string_view text) noexcept {
  ChangePlace place;
  const char* const end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, place.run);
  if (error != std::errc{} || dash == end || *dash != '-') return std::nullopt;
  const auto [stop, second_error] = std::from_chars(dash + 1, end, place.number);
  if (second_error != std::errc{} || stop != end) return std::nullopt;
  return place;
}

/// The first byte: the version of the format. Raise it with every change of the format.
constexpr std::uint8_t kFormat = 1;

/// The answer of one node to another.
struct Telling {
  ChangePlace next;
  ToldChanges told;
};

std::string encode(const Telling& telling) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u8(kFormat);
  writer.varint(telling.next.run);
  writer.varint(telling.next.number);
  writer.varint(telling.told.missed);
  writer.u8(telling.told.has_gap ? 1 : 0);
  for (const TaskChange& change : telling.told.changes) {
    writer.varint(change.id.value);
    writer.string(change.queue);
    writer.u8(static_cast<std::uint8_t>(change.event));
    writer.u8(static_cast<std::uint8_t>(change.state));
    writer.i64(change.at.time_since_epoch().count());
  }
  return bytes;
}

Result<TaskChange> read_change(ByteReader& reader) {
  TaskChange change;
  ASSIGN_OR_RETURN(change.id.value, reader.varint());
  ASSIGN_OR_RETURN(const std::string_view queue, reader.string());
  change.queue = queue;
  ASSIGN_OR_RETURN(const std::uint8_t event, reader.u8());
  ASSIGN_OR_RETURN(const std::uint8_t state, reader.u8());
  if (event > static_cast<std::uint8_t>(TaskEvent::away) ||
      state > static_cast<std::uint8_t>(TaskState::cancelled)) {
    return Error{ErrorCode::data_loss, "changes: unknown event or state", ""};
  }
  change.event = static_cast<TaskEvent>(event);
  change.state = static_cast<TaskState>(state);
  ASSIGN_OR_RETURN(const std::int64_t at, reader.i64());
  change.at = WallTime{WallTime::duration{at}};
  return change;
}

void send(const net::Responder& responder, std::string bytes) {
  responder.send(
      {.status = 200, .content_type = "application/octet-stream", .body = std::move(bytes)});
}

Result<Telling> decode(std::string_view bytes) {
  ByteReader reader(bytes);
  Telling telling;
  ASSIGN_OR_RETURN(const std::uint8_t format, reader.u8());
  if (format != kFormat)
    return Error{ErrorCode::data_loss, "changes: unknown version of the format", ""};
  ASSIGN_OR_RETURN(telling.next.run, reader.varint());
  ASSIGN_OR_RETURN(telling.next.number, reader.varint());
  ASSIGN_OR_RETURN(telling.told.missed, reader.varint());
  ASSIGN_OR_RETURN(const std::uint8_t has_gap, reader.u8());
  telling.told.has_gap = has_gap > 0;
  while (!reader.at_end()) {
    ASSIGN_OR_RETURN(TaskChange change, read_change(reader));
    telling.told.changes.push_back(std::move(change));
  }
  return telling;
}

}  // namespace

NodeChanges::NodeChanges(AskNode ask, Clock& clock, std::uint64_t run)
    : ask_(std::move(ask)), clock_(clock), collector_(run) {}

// ---- from any thread ----------------------------------------------------------------------------

void NodeChanges::set_nodes(const std::vector<std::string>& addresses) {
  {
    const MutexLock lock(mutex_);
    bool is_other = false;
    std::erase_if(nodes_, [&](const Node& node) {
      const bool is_gone = std::ranges::find(addresses, node.address) == addresses.end();
      is_other |= is_gone;
      return is_gone;
    });
    for (const std::string& address : addresses) {
      if (std::ranges::find(nodes_, address, &Node::address) != nodes_.end()) continue;
      nodes_.push_back({.address = address, .number = ++last_node_, .is_late = is_asking_});
      is_other = true;
    }
    if (!is_other) return;
    // The last changes of a node that left, and the first changes of a node that joined, are
    // unknown.
    if (is_asking_) tell_gap();
  }
  bell().ring();
}

void NodeChanges::answer(std::string_view after, const net::Responder& responder) {
  const std::optional<ChangePlace> place = parse_place(after);
  bool is_too_late = false;
  {
    const MutexLock lock(mutex_);
    is_too_late = is_stopping_;
    if (!is_too_late) {
      arrived_.push_back({.is_first = after.empty(),
                          .after = place,
                          .responder = responder,
                          .until = clock_.now() + kLongestQuestion});
    }
  }
  if (!is_too_late) return bell().ring();
  send(responder, encode({.next = place.value_or(ChangePlace{}), .told = {}}));
}

void NodeChanges::answered(std::uint64_t number, const std::optional<std::string>& bytes) {
  {
    const MutexLock lock(mutex_);
    const auto node = std::ranges::find(nodes_, number, &Node::number);
    if (!is_asking_ || node == nodes_.end()) return;
    node->is_asked = false;
    Result<Telling> telling = decode(bytes.value_or(""));
    node->next_question =
        clock_.now() +
        (telling ? std::chrono::milliseconds(ChangeCollector::kTakePeriod) : kAskAgain);
    if (!telling) {
      const bool is_unreadable = bytes.has_value();
      if (is_unreadable && !node->is_late) tell_gap();
      node->is_late |= is_unreadable || node->after.empty();
    } else {
      node->after = text_of(telling->next);
      telling->told.has_gap |= std::exchange(node->is_late, false);
      told_.push_back(std::move(telling->told));
    }
  }
  bell().ring();
}

void NodeChanges::tell_gap() { told_.push_back({.has_gap = true}); }

// ---- the thread of the reader -------------------------------------------------------------------

void NodeChanges::watch() {
  collector_.watch();
  const MutexLock lock(mutex_);
  if (std::exchange(is_asking_, true)) return;
  for (Node& node : nodes_) node = {.address = std::move(node.address), .number = ++last_node_};
  told_.clear();
}

MonotonicTime NodeChanges::collect(MonotonicTime now) {
  bool is_asked = false;
  {
    const MutexLock lock(mutex_);
    is_asked = !arrived_.empty();
    take_arrived();
  }
  if (is_asked) collector_.want(now);
  const MonotonicTime next_collection = collector_.collect(now);
  take_told();
  const MonotonicTime next_reply = reply(now, Ending::no);
  return std::min({next_collection, next_reply, ask_nodes(now)});
}

void NodeChanges::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    is_asking_ = false;
    take_arrived();
  }
  collector_.take_changes();
  reply(clock_.now(), Ending::yes);
  collector_.stop();
}

void NodeChanges::take_arrived() {
  for (Question& question : arrived_) questions_.push_back(std::move(question));
  arrived_.clear();
}

void NodeChanges::take_told() {
  std::vector<ToldChanges> told;
  {
    const MutexLock lock(mutex_);
    told = std::exchange(told_, {});
  }
  for (ToldChanges& one : told) {
    for (TaskChange& change : one.changes) {
      log().add(std::move(change), ChangeLog::Origin::elsewhere);
    }
    if (one.missed > 0) log().add_missed(one.missed, ChangeLog::Origin::elsewhere);
    if (one.has_gap) log().add_gap();
  }
}

/// Answers the questions that need not wait any more. Returns when the next question ends.
MonotonicTime NodeChanges::reply(MonotonicTime now, Ending ending) {
  MonotonicTime next = MonotonicTime::max();
  std::erase_if(questions_, [&](Question& question) {
    const bool may_wait = ending == Ending::no && now < question.until;
    std::optional<std::string> bytes = reply_to(question, may_wait);
    if (!bytes) {
      next = std::min(next, question.until);
      return false;
    }
    send(question.responder, *std::move(bytes));
    return true;
  });
  return next;
}

/// Returns no value while there are no changes to report.
std::optional<std::string> NodeChanges::reply_to(Question& question, bool may_wait) {
  const ChangeLog& log = collector_.log();
  Telling telling{.next = {.run = log.run(), .number = log.end()}, .told = {}};
  if (question.is_first) return encode(telling);
  const bool is_kept = question.after && question.after->run == log.run() &&
                       question.after->number >= log.begin() && question.after->number <= log.end();
  if (!is_kept) {
    telling.told.has_gap = true;
    return encode(telling);
  }
  std::uint64_t& number = question.after->number;
  ToldChanges& told = telling.told;
  while (number < log.end() && told.changes.size() < kMostTold && told.missed == 0) {
    const ChangeLog::Entry& entry = log.at(number++);
    if (entry.origin == ChangeLog::Origin::elsewhere) continue;
    told.missed = entry.missed;  // missed changes come after the reported changes
    if (entry.is_change()) told.changes.push_back(entry.change);
  }
  if (may_wait && told.changes.empty() && told.missed == 0) return std::nullopt;
  telling.next.number = number;
  return encode(telling);
}

/// Returns when a node must be asked again.
MonotonicTime NodeChanges::ask_nodes(MonotonicTime now) {
  std::vector<Node> asked;
  MonotonicTime next = MonotonicTime::max();
  {
    const MutexLock lock(mutex_);
    if (is_asking_ && !collector_.is_for_clients(now)) {
      // No client of this node can continue across this point.
      is_asking_ = false;
      log().add_gap();
    }
    if (!is_asking_) return next;
    for (Node& node : nodes_) {
      if (node.is_asked) continue;
      if (now < node.next_question) {
        next = std::min(next, node.next_question);
        continue;
      }
      node.is_asked = true;
      asked.push_back(node);
    }
  }
  for (const Node& node : asked) ask(node);
  return next;
}

void NodeChanges::ask(const Node& node) {
  ask_(node.address, node.after,
       [this, number = node.number](const std::optional<std::string>& bytes) {
         answered(number, bytes);
       });
}

}  // namespace detent::server
