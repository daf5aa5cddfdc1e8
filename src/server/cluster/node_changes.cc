#include "server/cluster/node_changes.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/bytes.h"

namespace detent::server {
namespace {

/// A place among the changes of a node.
struct Mark {
  std::uint64_t run = 0;
  std::uint64_t number = 0;  // of the next change
};

std::string text_of(Mark mark) {
  return std::to_string(mark.run) + "-" + std::to_string(mark.number);
}

std::optional<Mark> parse_mark(std::string_view text) noexcept {
  Mark mark;
  const char* const end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, mark.run);
  if (error != std::errc{} || dash == end || *dash != '-') return std::nullopt;
  const auto [stop, second_error] = std::from_chars(dash + 1, end, mark.number);
  if (second_error != std::errc{} || stop != end) return std::nullopt;
  return mark;
}

/// The first byte: the version of the format. Raise it with every change of the format.
constexpr std::uint8_t kFormat = 1;

/// The answer of one node to another.
struct Telling {
  Mark next;
  ChangeSource::Taken told;
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
    : ask_(std::move(ask)), clock_(clock), run_(run), thread_([this] { this->run(); }) {}

NodeChanges::~NodeChanges() { stop(); }

// ---- from any thread ----------------------------------------------------------------------------

std::shared_ptr<ChangeFeed> NodeChanges::new_feed() {
  auto feed = std::make_shared<ChangeFeed>();
  const MutexLock lock(mutex_);
  if (are_fed_) {
    feed->watch();
  } else {  // drop changes of engines that have ended
    std::erase_if(feeds_, [](const auto& other) { return other.use_count() == 1; });
  }
  feeds_.push_back(feed);
  return feed;
}

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
      nodes_.push_back({.address = address, .number = ++last_node_, .is_late = is_watched_});
      is_other = true;
    }
    if (!is_other) return;
    // The last changes of a node that left, and the first changes of a node that joined, are
    // unknown.
    if (is_watched_) tell_gap();
  }
  bell_.ring();
  watchers_bell_.ring();
}

void NodeChanges::answer(std::string_view after, const net::Responder& responder) {
  std::optional<std::string> last_reply;
  {
    const MutexLock lock(mutex_);
    const MonotonicTime now = clock_.now();
    Question question{
        .after = std::string(after), .responder = responder, .until = now + kLongestQuestion};
    if (is_stopping_) {
      last_reply = reply_to(question, now);  // the thread may have ended
    } else {
      asked_until_ = now + kKeptUnasked;
      questions_.push_back(std::move(question));
    }
  }
  if (last_reply) return send(responder, *std::move(last_reply));
  bell_.ring();
}

void NodeChanges::watch() {
  {
    const MutexLock lock(mutex_);
    is_watched_ = true;
    for (Node& node : nodes_) node = {.address = std::move(node.address), .number = ++last_node_};
    // Start the feeds before the watcher learns that it watches, so that it misses no change here.
    if (!std::exchange(are_fed_, true)) {
      for (const auto& feed : feeds_) feed->watch();
    }
    take_feeds();  // these changes were kept for others
    waiting_ = {};
  }
  bell_.ring();
}

void NodeChanges::unwatch() {
  const MutexLock lock(mutex_);
  is_watched_ = false;
  waiting_ = {};
}

ChangeSource::Taken NodeChanges::take() {
  const MutexLock lock(mutex_);
  return std::exchange(waiting_, {});
}

void NodeChanges::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  bell_.ring();
  const MutexLock lock(joining_);
  thread_.join();
}

// ---- the thread ---------------------------------------------------------------------------------

void NodeChanges::run() {
  for (;;) {
    const MonotonicTime now = clock_.now();
    const MonotonicTime next = step(now);
    {
      const MutexLock lock(mutex_);
      if (is_stopping_ && questions_.empty()) return;
    }
    clock_.wait(bell_, next == MonotonicTime::max() ? std::nullopt : std::optional(next));
  }
}

/// Returns when there may be something to do again.
MonotonicTime NodeChanges::step(MonotonicTime now) {
  std::vector<Reply> replies_now;
  std::vector<Node> questions_now;
  bool is_active = false;
  bool has_news = false;
  {
    const MutexLock lock(mutex_);
    is_active = is_wanted(now);
    if (is_active && !std::exchange(are_fed_, true)) {
      for (const auto& feed : feeds_) feed->watch();
    }
    take_feeds();
    if (!is_active && are_fed_) forget();
    replies_now = replies(now);
    if (is_watched_ && !is_stopping_) questions_now = questions(now);
    has_news = !waiting_.changes.empty() || waiting_.missed > 0 || waiting_.has_gap;
  }
  if (has_news) watchers_bell_.ring();
  for (Reply& reply : replies_now) send(reply.responder, std::move(reply.bytes));
  for (const Node& node : questions_now) ask(node);
  return is_active ? now + kTakePeriod : MonotonicTime::max();
}

bool NodeChanges::is_wanted(MonotonicTime now) const {
  return is_watched_ || (asked_until_ && now < *asked_until_);
}

void NodeChanges::take_feeds() {
  std::erase_if(feeds_, [this](const std::shared_ptr<ChangeFeed>& feed) DETENT_REQUIRES(mutex_) {
    const bool is_last = feed.use_count() == 1;  // its engine has ended: this is all
    ChangeFeed::Taken taken = feed->take();
    for (TaskChange& change : taken.changes) keep({.change = std::move(change)});
    if (taken.missed > 0) keep({.change = {}, .missed = taken.missed});
    return is_last;
  });
}

void NodeChanges::keep(Entry entry) {
  if (is_watched_) {
    if (entry.missed > 0) {
      waiting_.missed += entry.missed;
    } else {
      tell(entry.change);
    }
  }
  kept_.push_back(std::move(entry));
  ++end_;
  if (kept_.size() > kMostKept) kept_.pop_front();
}

/// No changes are kept from here on for a while, so no reader can continue across this point.
void NodeChanges::forget() {
  for (const auto& feed : feeds_) feed->unwatch();
  are_fed_ = false;
  kept_.clear();
  ++end_;
}

std::vector<NodeChanges::Reply> NodeChanges::replies(MonotonicTime now) {
  std::vector<Reply> replies;
  std::erase_if(questions_, [&](const Question& question) DETENT_REQUIRES(mutex_) {
    std::optional<std::string> bytes = reply_to(question, now);
    if (!bytes) return false;
    replies.push_back({question.responder, *std::move(bytes)});
    return true;
  });
  return replies;
}

/// Returns no value while there are no changes to report.
std::optional<std::string> NodeChanges::reply_to(const Question& question, MonotonicTime now) {
  Telling telling{.next = {.run = run_, .number = end_}, .told = {}};
  if (question.after.empty()) return encode(telling);
  const std::optional<Mark> after = parse_mark(question.after);
  const std::uint64_t begin = end_ - kept_.size();
  if (!after || after->run != run_ || after->number < begin || after->number > end_) {
    telling.told.has_gap = true;
    return encode(telling);
  }
  if (after->number == end_) {
    if (now < question.until && !is_stopping_) return std::nullopt;
    return encode(telling);
  }
  std::uint64_t number = after->number;
  while (number < end_ && telling.told.changes.size() < kMostWaiting) {
    const Entry& entry = kept_[number++ - begin];
    if (entry.missed > 0) {
      telling.told.missed = entry.missed;
      break;  // missed changes come after the reported changes
    }
    telling.told.changes.push_back(entry.change);
  }
  telling.next.number = number;
  return encode(telling);
}

// ---- the other nodes ----------------------------------------------------------------------------

std::vector<NodeChanges::Node> NodeChanges::questions(MonotonicTime now) {
  std::vector<Node> questions;
  for (Node& node : nodes_) {
    if (node.is_asked || now < node.next_question) continue;
    node.is_asked = true;
    questions.push_back(node);
  }
  return questions;
}

void NodeChanges::ask(const Node& node) {
  ask_(node.address, node.after,
       [this, number = node.number](const std::optional<std::string>& bytes) {
         answered(number, bytes);
       });
}

void NodeChanges::answered(std::uint64_t number, const std::optional<std::string>& bytes) {
  {
    const MutexLock lock(mutex_);
    const auto node = std::ranges::find(nodes_, number, &Node::number);
    if (!is_watched_ || node == nodes_.end()) return;
    node->is_asked = false;
    Result<Telling> telling = decode(bytes.value_or(""));
    node->next_question = clock_.now() + (telling ? kTakePeriod : kAskAgain);
    if (!telling) {
      const bool is_unreadable = bytes.has_value();
      if (is_unreadable && !node->is_late) tell_gap();
      node->is_late |= is_unreadable || node->after.empty();
      return;
    }
    node->after = text_of(telling->next);
    for (TaskChange& change : telling->told.changes) tell(std::move(change));
    waiting_.missed += telling->told.missed;
    if (std::exchange(node->is_late, false) || telling->told.has_gap) tell_gap();
  }
  bell_.ring();
}

// ---- for the watching reader --------------------------------------------------------------------

void NodeChanges::tell(TaskChange change) {
  // Once a change is missed, all later changes of this batch are missed too. Missed changes
  // therefore always come after the reported changes.
  const bool has_room =
      waiting_.changes.size() < kMostWaiting && waiting_.missed == 0 && !waiting_.has_gap;
  if (has_room) {
    waiting_.changes.push_back(std::move(change));
  } else {
    ++waiting_.missed;
  }
}

void NodeChanges::tell_gap() { waiting_.has_gap = true; }

}  // namespace detent::server
