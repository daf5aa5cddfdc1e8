#include "cli/commands/top_command.h"

#include <utility>

#include "cli/commands/top_screen.h"
#include "client/client_impl.h"
#include "protocol/json/stats_codec.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

constexpr char kEscape = '\x1B';
constexpr char kEndOfInput = '\x04';

/// Returns the answer of the server.
Result<std::string> look(Client& client, TopView& view) {
  ASSIGN_OR_RETURN(std::string answer, to_result(client.stats()));
  ASSIGN_OR_RETURN(json::ServerStats stats, json::parse_stats(answer));
  view.before = std::exchange(view.now, std::move(stats));
  return answer;
}

void show_once(const TopView& view, const Streams& streams) {
  constexpr std::size_t kAnyWidth = 200;  // if standard output is not a terminal
  constexpr std::size_t kOtherLines = 7;
  const std::size_t width = streams.terminal.columns > 0 ? streams.terminal.columns : kAnyWidth;
  std::vector<std::string> lines = render_top(view, width, view.now.queues.size() + kOtherLines);
  lines.pop_back();  // the keys
  for (const std::string& line : lines) streams.out << line << '\n';
}

void show(const TopView& view, const std::string& answer, OutputFormat format,
          TopDisplay& display) {
  if (display.is_screen()) {
    display.show(render_top(view, display.width(), display.height()));
  } else {
    display.show({format == OutputFormat::json ? answer : render_top_line(view)});
  }
}

/// Shows the view and handles keys until the interval has passed. Returns false if the user quits.
bool show_and_wait(TopView& view, const std::string& answer, const ClientCall& call,
                   milliseconds interval, TopDisplay& display) {
  while (true) {
    show(view, answer, call.format, display);
    const TopEvent event = display.wait(interval);
    if (event.kind == TopEvent::Kind::time) return true;
    if (event.kind == TopEvent::Kind::quit) return false;
    if (event.kind == TopEvent::Kind::key) {
      if (event.key == 'q' || event.key == kEscape || event.key == kEndOfInput) return false;
      view.order = order_of_key(event.key).value_or(view.order);
    }
  }
}

}  // namespace

ExitCode run_top(const TopCommand& command, const ClientCall& call, Client& client,
                 const Streams& streams, const OpenTopDisplay& open) {
  TopView view{.server = call.server};
  Result<std::string> answer = look(client, view);
  if (!answer) return fail_with(streams, answer.error());
  if (command.once) {
    if (call.format == OutputFormat::json) {
      streams.out << *answer << '\n';
    } else {
      show_once(view, streams);
    }
    return ExitCode::done;
  }
  const std::unique_ptr<TopDisplay> display = open(streams);
  while (show_and_wait(view, answer.value_or(""), call, command.interval, *display)) {
    answer = look(client, view);
    if (!answer && !display->is_screen()) return fail_with(streams, answer.error());
    view.trouble = answer ? "" : answer.error().message;
  }
  return ExitCode::done;
}

}  // namespace detent::cli
