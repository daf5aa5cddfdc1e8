#include "server/beanstalk/tube_replies.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "protocol/beanstalk/reply_writer.h"

namespace detent::server {
namespace {

using beanstalk::Verb;

constexpr std::string_view kKicked = "KICKED ";
constexpr std::string_view kStats = "OK ";
constexpr std::string_view kNotFound = "NOT_FOUND\r\n";

std::uint64_t number_at(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// A line of the YAML that counts jobs; the others are the same in each partition.
bool counts_jobs(std::string_view line) noexcept {
  return line.starts_with("current-jobs-") || line.starts_with("total-jobs");
}

/// Adds the numbers of jobs in the `more` reply to those of `sum`; both have the same lines.
std::string add_stats(std::string_view sum, std::string_view more) {
  std::string body;
  const auto take_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
  };
  take_line(sum);
  take_line(more);
  while (!sum.empty() && sum != "\r\n") {
    const std::string_view line = take_line(sum);
    const std::string_view other = take_line(more);
    const std::size_t value = line.find(": ") + 2;
    if (!counts_jobs(line)) {
      body.append(line).push_back('\n');
      continue;
    }
    const std::uint64_t count =
        number_at(line.substr(value)) + number_at(other.substr(std::min(value, other.size())));
    body.append(line.substr(0, value)).append(std::to_string(count)).push_back('\n');
  }
  std::string reply;
  beanstalk::write_ok(reply, body);
  return reply;
}

}  // namespace

bool TubeReplies::add(std::string_view reply) {
  const Verb verb = call_.command.verb;
  if (verb == Verb::kick) return add_kicked(reply);
  const bool is_one_more = !whole_.empty() && whole_ != kNotFound && reply != kNotFound;
  if (verb == Verb::stats_tube && is_one_more && reply.starts_with(kStats)) {
    whole_ = add_stats(whole_, reply);
  } else if (whole_.empty() || reply != kNotFound) {
    whole_ = reply;
  }
  const bool is_peek = verb != Verb::stats_tube && verb != Verb::pause_tube;
  return !is_peek || whole_ == kNotFound;
}

bool TubeReplies::add_kicked(std::string_view reply) {
  if (!reply.starts_with(kKicked)) {
    if (kicked_ == 0) whole_ = reply;
    return false;
  }
  const std::uint64_t count = number_at(reply.substr(kKicked.size()));
  kicked_ += count;
  call_.command.bound -= std::min(call_.command.bound, count);
  whole_.clear();
  beanstalk::write_kicked(whole_, kicked_);
  return call_.command.bound > 0;
}

}  // namespace detent::server
