#include "protocol/beanstalk/command_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "detent/check.h"
#include "task/task.h"

namespace detent::beanstalk {
namespace {

using std::chrono::seconds;

constexpr std::string_view kLineEnd = "\r\n";

/// The arguments that follow the word of a command.
enum class Shape : std::uint8_t { nothing, anything, job, tube, number, put, release, bury, pause };

struct Syntax {
  std::string_view word;
  Verb verb;
  Shape shape;
};

/// The parser compares the start of a line with these words from top to bottom, as beanstalkd does.
/// The order matters: "reserve-job" without an id matches "reserve" with extra text (BAD_FORMAT),
/// and "touch" without an id matches no word (UNKNOWN_COMMAND).
constexpr std::array<Syntax, kVerbs> kSyntax{{
    {"put ", Verb::put, Shape::put},
    {"peek ", Verb::peek, Shape::job},
    {"peek-ready", Verb::peek_ready, Shape::nothing},
    {"peek-delayed", Verb::peek_delayed, Shape::nothing},
    {"peek-buried", Verb::peek_buried, Shape::nothing},
    {"reserve-with-timeout ", Verb::reserve_with_timeout, Shape::number},
    {"reserve-job ", Verb::reserve_job, Shape::job},
    {"reserve", Verb::reserve, Shape::nothing},
    {"delete ", Verb::delete_job, Shape::job},
    {"release ", Verb::release, Shape::release},
    {"bury ", Verb::bury, Shape::bury},
    {"kick ", Verb::kick, Shape::number},
    {"kick-job ", Verb::kick_job, Shape::job},
    {"touch ", Verb::touch, Shape::job},
    {"stats-job ", Verb::stats_job, Shape::job},
    {"stats-tube ", Verb::stats_tube, Shape::tube},
    {"stats", Verb::stats, Shape::nothing},
    {"use ", Verb::use, Shape::tube},
    {"watch ", Verb::watch, Shape::tube},
    {"ignore ", Verb::ignore, Shape::tube},
    {"list-tubes-watched", Verb::list_tubes_watched, Shape::nothing},
    {"list-tube-used", Verb::list_tube_used, Shape::nothing},
    {"list-tubes", Verb::list_tubes, Shape::nothing},
    {"pause-tube", Verb::pause_tube, Shape::pause},
    {"quit", Verb::quit, Shape::anything},
}};

/// Reads the arguments after the word of a command. Spaces may precede each argument. No text may
/// follow the last argument.
class Arguments {
 public:
  explicit Arguments(std::string_view text) noexcept : text_(text) {}

  template <class Number>
  bool read(Number& number) {
    skip_spaces();
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (error != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }
  bool read(seconds& duration) {
    std::uint32_t count = 0;
    if (!read(count)) return false;
    duration = seconds{count};
    return true;
  }
  /// Reads a tube name, up to the next space or the end.
  bool read(std::string& tube) {
    skip_spaces();
    tube = text_.substr(0, text_.find(' '));
    text_.remove_prefix(tube.size());
    return is_queue_name(tube);
  }
  bool is_at_end() const noexcept { return text_.empty(); }

 private:
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  std::string_view text_;
};

/// Reads the arguments of `shape` into `command`. For a put, `body_bytes` becomes the size of the
/// body in bytes. Returns false if an argument is missing, wrong or extra.
bool read_arguments(std::string_view text, Shape shape, Command& command,
                    std::uint32_t& body_bytes) {
  Arguments arguments(text);
  const auto read_all = [&arguments](auto&... values) {
    return (arguments.read(values) && ...) && arguments.is_at_end();
  };
  switch (shape) {
    case Shape::nothing:
      return text.empty();
    case Shape::anything:
      return true;
    case Shape::job:
      return read_all(command.id);
    case Shape::tube:
      command.queue = text;
      return is_queue_name(text);
    case Shape::number:
      return command.verb == Verb::kick ? read_all(command.bound) : read_all(command.time_out);
    case Shape::put:
      return read_all(command.priority, command.delay, command.time_out, body_bytes);
    case Shape::release:
      return read_all(command.id, command.priority, command.delay);
    case Shape::bury:
      return read_all(command.id, command.priority);
    case Shape::pause:
      return text.starts_with(' ') && read_all(command.queue, command.delay);
  }
  return false;
}

/// Returns the position after the first "\r\n" that ends in `bytes`, or nullopt if no "\r\n" ends
/// there. `before` is the byte before `bytes`, because the two bytes can arrive in separate pieces.
std::optional<std::size_t> find_line_end(char before, std::string_view bytes) {
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if ((at > 0 ? bytes[at - 1] : before) == '\r') return at + 1;
  }
  return std::nullopt;
}

}  // namespace

std::size_t CommandParser::parse(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !is_complete()) {
    const std::string_view rest = bytes.substr(taken);
    const bool is_in_line = phase_ == Phase::line || phase_ == Phase::rest_of_line;
    taken += is_in_line ? parse_line(rest) : parse_body(rest);
  }
  return taken;
}

std::size_t CommandParser::parse_line(std::string_view bytes) {
  const std::optional<std::size_t> end = find_line_end(last_, bytes);
  const std::size_t size = end.value_or(bytes.size());
  last_ = bytes[size - 1];
  if (phase_ == Phase::line && line_.size() + size > kMaxLineBytes) {
    line_.clear();
    phase_ = Phase::rest_of_line;
  }
  if (phase_ == Phase::line) line_.append(bytes.substr(0, size));
  if (end) finish_line();
  return size;
}

void CommandParser::finish_line() {
  last_ = '\0';
  if (phase_ == Phase::rest_of_line) return complete(Refusal::bad_format);
  std::string_view line{line_};
  line.remove_suffix(kLineEnd.size());
  // A reader that stops at a NUL byte could take this line for another command.
  if (line.find('\0') != std::string_view::npos) return complete(Refusal::bad_format);
  const auto* const syntax = std::ranges::find_if(
      kSyntax, [line](const Syntax& candidate) { return line.starts_with(candidate.word); });
  if (syntax == kSyntax.end()) return complete(Refusal::unknown_command);
  Command command{.verb = syntax->verb};
  std::uint32_t body_bytes = 0;
  if (!read_arguments(line.substr(syntax->word.size()), syntax->shape, command, body_bytes)) {
    return complete(Refusal::bad_format);
  }
  const bool has_body = command.verb == Verb::put;
  complete(std::move(command));
  if (!has_body) return;
  left_ = body_bytes + kLineEnd.size();
  phase_ = body_bytes > max_body_bytes_ ? Phase::rest_of_body : Phase::body;
}

std::size_t CommandParser::parse_body(std::string_view bytes) {
  const std::size_t size = std::min<std::uint64_t>(left_, bytes.size());
  if (phase_ == Phase::body) std::get<Command>(input_).body.append(bytes.substr(0, size));
  left_ -= size;
  if (left_ == 0) finish_body();
  return size;
}

void CommandParser::finish_body() {
  if (phase_ == Phase::rest_of_body) return complete(Refusal::job_too_big);
  std::string& body = std::get<Command>(input_).body;
  if (!body.ends_with(kLineEnd)) return complete(Refusal::expected_crlf);
  body.resize(body.size() - kLineEnd.size());
  phase_ = Phase::complete;
}

void CommandParser::complete(Input input) {
  input_ = std::move(input);
  line_.clear();
  phase_ = Phase::complete;
}

Input CommandParser::take() {
  DETENT_CHECK(is_complete());
  phase_ = Phase::line;
  return std::move(input_);
}

}  // namespace detent::beanstalk
