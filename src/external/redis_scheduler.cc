#include "external/redis_scheduler.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/wall_time.h"
#include "detent/check.h"
#include "store/record_format.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// The most tasks and bytes in one script call, so that Redis is never busy for long. A single
/// record may be larger.
constexpr std::size_t kCallTasks = 128;
constexpr std::size_t kCallBytes = std::size_t{256} << 10;

constexpr std::size_t kDigits = 16;

/// Pads to 16 digits, so that texts sort as their numbers do. Ids are below 2^53, and times are
/// before the year 10000, so 16 digits are enough.
std::string digits(std::uint64_t number) {
  std::string text = std::to_string(number);
  DETENT_CHECK(text.size() <= kDigits);
  return text.insert(0, kDigits - text.size(), '0');
}
std::string digits(TaskId id) { return digits(id.value); }
std::string digits(WallTime time) {
  DETENT_CHECK(time >= WallTime{});
  DETENT_CHECK(time < kWallTimeEnd);
  return digits(static_cast<std::uint64_t>(time.time_since_epoch().count()));
}
/// For comparisons only: a time outside the range of due times becomes the nearest time in it.
std::string digits_within(WallTime time) {
  return digits(std::clamp(time, WallTime{}, kWallTimeEnd - milliseconds{1}));
}

Error damaged(std::string_view id, std::string_view cause) {
  return {ErrorCode::data_loss,
          "read record of task " + std::string(id) + ": " + std::string(cause), ""};
}

/// `value` is the due time followed by the record, as in the hash.
Result<Task> decode(std::string_view id_digits, std::string_view value) {
  std::string_view number = id_digits;
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  const std::optional<TaskId> id = parse_task_id(number);
  if (!id || id_digits != digits(*id)) return damaged(id_digits, "its key is not a task id");
  if (value.size() < kDigits) return damaged(id_digits, "it is too short");
  ASSIGN_OR_RETURN(Task task, decode_record(*id, value.substr(kDigits)));
  if (value.substr(0, kDigits) != digits_within(task.due_at)) {
    return damaged(id_digits, "its due time differs from the one that is stored before it");
  }
  return task;
}

Error no_such_reply(std::string_view verb) {
  return {ErrorCode::internal, std::string(verb) + ": unexpected type of reply from the script",
          ""};
}

}  // namespace

Result<std::unique_ptr<RedisScheduler>> RedisScheduler::create(RedisOptions options) {
  TRY(parse_redis_address(options.address));
  if (!is_queue_name(options.name)) {
    return Error{ErrorCode::invalid_argument,
                 "the NAME in ?name=NAME must have the form of a queue name: 1 to 200 "
                 "letters, digits and -+/;:.$_(), not starting with a hyphen",
                 "name"};
  }
  if (options.folder.empty()) {
    return Error{ErrorCode::invalid_argument, "must be the identity of a data folder", "folder"};
  }
  if (!options.user.empty() && options.password.empty()) {
    return Error{ErrorCode::invalid_argument, "the user needs a password, USER:PASSWORD",
                 "password"};
  }
  if (options.timeouts.connect <= milliseconds{0} || options.timeouts.command <= milliseconds{0}) {
    return Error{ErrorCode::invalid_argument, "must be greater than 0", "timeouts"};
  }
  return std::unique_ptr<RedisScheduler>(new RedisScheduler(std::move(options)));
}

Result<std::vector<RedisReply>> RedisScheduler::exchange(std::string_view verb, const Send& send) {
  auto replies = try_exchange(send);
  // A repeat is safe: calls can be repeated, and a take() whose script was missing claimed nothing.
  if (!replies && has_lost_scripts_) replies = try_exchange(send);
  if (replies) return replies;
  return with_context(std::string(verb) + ": redis at " + options_.address,
                      std::move(replies).error());
}

Result<std::vector<RedisReply>> RedisScheduler::try_exchange(const Send& send) {
  has_lost_scripts_ = false;
  // Redis closes idle connections, and closes all when it restarts. This is no reason to fail the
  // next call.
  if (session_ && !session_->is_open()) session_.reset();
  // Keep a session only after success: after an error, replies of the failed call may still come.
  std::unique_ptr<RedisSession> session = std::move(session_);
  if (!session) {
    ASSIGN_OR_RETURN(session, RedisSession::open(options_));
  }
  ASSIGN_OR_RETURN(const std::size_t count, send(*session));
  std::vector<RedisReply> replies;
  replies.reserve(count);
  while (replies.size() < count) {
    auto reply = session->receive();
    has_lost_scripts_ = session->has_lost_scripts();
    if (!reply) return std::move(reply).error();
    replies.push_back(*std::move(reply));
  }
  session_ = std::move(session);
  return replies;
}

Result<void> RedisScheduler::put(std::span<const Task> tasks) {
  const auto send = [tasks](RedisSession& session) -> Result<std::size_t> {
    std::size_t calls = 0;
    std::size_t bytes = 0;
    std::vector<std::string> arguments;
    for (const Task& task : tasks) {
      arguments.push_back(digits(task.id));
      arguments.push_back(digits(task.due_at));
      arguments.push_back(encode_record(task));
      bytes += arguments.back().size();
      const bool is_last = &task == &tasks.back();
      if (!is_last && arguments.size() < 3 * kCallTasks && bytes < kCallBytes) continue;
      TRY(session.send(RedisScript::put, arguments));
      arguments.clear();
      bytes = 0;
      ++calls;
    }
    return calls;
  };
  TRY(exchange("put " + std::to_string(tasks.size()) + " tasks", send));
  return ok();
}

Result<CancelOutcome> RedisScheduler::cancel(TaskId id) {
  const std::string verb = "cancel task " + to_string(id);
  const auto send = [id](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::cancel, std::array{digits(id)}));
    return std::size_t{1};
  };
  ASSIGN_OR_RETURN(const auto replies, exchange(verb, send));
  if (replies[0].kind != RedisReply::Kind::integer) return no_such_reply(verb);
  switch (replies[0].integer) {
    case 0:
      return CancelOutcome::cancelled;
    case 1:
      return CancelOutcome::being_handed_back;
    default:
      return CancelOutcome::not_there;
  }
}

Result<std::optional<Task>> RedisScheduler::find(TaskId id) {
  const auto send = [id](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::find, std::array{digits(id)}));
    return std::size_t{1};
  };
  ASSIGN_OR_RETURN(const auto replies, exchange("find task " + to_string(id), send));
  if (replies[0].kind == RedisReply::Kind::nil) return std::optional<Task>{};
  ASSIGN_OR_RETURN(Task task, decode(digits(id), replies[0].text));
  return std::optional(std::move(task));
}

Result<Taken> RedisScheduler::take(const TakeRequest& request) {
  DETENT_CHECK(request.limit > 0);
  const std::array arguments{digits_within(request.now), digits_within(request.until),
                             std::to_string(request.limit),
                             digits_within(request.now + request.claim)};
  const auto send = [&arguments](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::take, arguments));
    return std::size_t{1};
  };
  ASSIGN_OR_RETURN(const auto replies, exchange("take tasks", send));
  const std::vector<RedisReply>& elements = replies[0].elements;
  Taken taken;
  std::vector<std::string> damaged_ids;
  taken.tasks.reserve(elements.size() / 2);
  for (std::size_t i = 0; i + 1 < elements.size(); i += 2) {
    auto task = decode(elements[i].text, elements[i + 1].text);
    if (task) {
      taken.tasks.push_back(*std::move(task));
    } else {
      taken.damaged.push_back(std::move(task).error());
      damaged_ids.push_back(elements[i].text);
    }
  }
  TRY(for_each_id("set damaged records aside", RedisScript::set_aside, damaged_ids));
  return taken;
}

Result<void> RedisScheduler::forget(std::span<const TaskId> ids) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const TaskId id : ids) texts.push_back(digits(id));
  return for_each_id("forget " + std::to_string(ids.size()) + " tasks", RedisScript::forget, texts);
}

Result<void> RedisScheduler::for_each_id(std::string_view verb, RedisScript script,
                                         std::span<const std::string> ids) {
  const auto send = [script, ids](RedisSession& session) -> Result<std::size_t> {
    std::size_t calls = 0;
    for (auto rest = ids; !rest.empty(); ++calls) {
      const std::size_t count = std::min(rest.size(), kCallTasks);
      TRY(session.send(script, rest.first(count)));
      rest = rest.subspan(count);
    }
    return calls;
  };
  if (ids.empty()) return ok();
  TRY(exchange(verb, send));
  return ok();
}

Result<std::uint64_t> RedisScheduler::size() {
  const auto send = [](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::size, {}));
    return std::size_t{1};
  };
  ASSIGN_OR_RETURN(const auto replies, exchange("count tasks", send));
  return static_cast<std::uint64_t>(replies[0].integer);
}

Result<void> RedisScheduler::stamp(std::uint64_t before, std::uint64_t generation) {
  const std::array arguments{std::to_string(before), std::to_string(generation)};
  const auto send = [&arguments](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::stamp, arguments));
    return std::size_t{1};
  };
  TRY(exchange("stamp generation " + std::to_string(generation), send));
  return ok();
}

Result<std::uint64_t> RedisScheduler::generation() {
  const auto send = [](RedisSession& session) -> Result<std::size_t> {
    TRY(session.send(RedisScript::generation, {}));
    return std::size_t{1};
  };
  ASSIGN_OR_RETURN(const auto replies, exchange("read the generation", send));
  return parse_generation(replies[0].text);
}

std::string RedisScheduler::stamp_command(std::uint64_t generation) const {
  return options_.command() + "SET '" + options_.key(kGenerationKey) + "' " +
         std::to_string(generation);
}

}  // namespace detent
