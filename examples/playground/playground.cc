// The playground in the browser (docs/playground): real queues, compiled to WebAssembly. The page
// sends commands as text and gets the state of a panel as JSON:
//
//     make PANEL DESIGN SIZES NOW     SIZES: numbers with commas, or -
//     schedule PANEL TIMER DEADLINE
//     cancel PANEL TIMER
//     advance PANEL TICK
//
// The page draws the answer. It knows nothing about wheels. The program in turn knows no language:
// it answers with names, and texts.json has the words for them. Only the errors of the queues are
// sentences.
#include <emscripten.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "machine.h"
#include "panel.h"

namespace playground {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    if (letter == separator) {
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  return words;
}

Tick tick_of(const std::string& digits) { return std::strtoull(digits.c_str(), nullptr, 10); }

// ---- JSON.

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') json += '\\';
    json += letter;
  }
  return json + '"';
}

template <class Values, class Text>
std::string array_of(const Values& values, const Text& text) {
  std::string json = "[";
  for (const auto& value : values) {
    if (json.size() > 1) json += ',';
    json += text(value);
  }
  return json + ']';
}

std::string member(const char* name, const std::string& value) {
  return quoted(name) + ':' + value;
}
std::string member(const char* name, std::uint64_t value) {
  return member(name, std::to_string(value));
}

std::string text_of(Tick value) { return std::to_string(value); }

std::string slot_json(const SlotPicture& slot) {
  return '{' + member("index", slot.index) + ',' +
         member("deadlines", array_of(slot.deadlines, text_of)) + '}';
}

std::string level_json(const LevelPicture& level) {
  return '{' + member("slotCount", level.slot_count) + ',' +
         member("hand", level.hand.value_or(0)) + ',' +
         member("slots", array_of(level.slots, slot_json)) + '}';
}

std::string row_json(const Boxes& row) {
  const auto box_text = [](const Box& box) { return quoted(box.text); };
  return '{' + member("name", quoted(row.name)) + ',' +
         member("boxes", array_of(row.boxes, box_text)) + '}';
}

// [kind, tick, numbers …]
std::string event_json(const Event& event) {
  std::vector<std::string> parts{quoted(event.kind), text_of(event.at)};
  for (const Tick number : event.numbers) parts.push_back(text_of(number));
  return array_of(parts, [](const std::string& part) { return part; });
}

const char* name_of(TimerState state) {
  switch (state) {
    case TimerState::pending:
      return "pending";
    case TimerState::fired:
      return "fired";
    case TimerState::cancelled:
      return "cancelled";
    case TimerState::refused:
      return "refused";
  }
  return "";
}

std::string counts_json(const Panel& panel) {
  const Counts& counts = panel.counts();
  return '{' + member("schedules", counts.schedules) + ',' + member("cancels", counts.cancels) +
         ',' + member("wakeups", counts.wakeups) + ',' + member("moves", counts.moves) + ',' +
         member("fired", counts.fired) + '}';
}

std::string memory_json(const Machine& machine) {
  return '{' + member("queue", machine.queue_bytes()) + ',' + member("heap", machine.heap_bytes()) +
         ',' + member("timer", machine.timer_bytes()) + '}';
}

// The coarse levels of a large wheel are shown only if they have timers.
Picture trimmed(Picture picture) {
  constexpr std::size_t kAlwaysShown = 6;
  while (picture.levels.size() > kAlwaysShown && picture.levels.back().slots.empty()) {
    picture.levels.pop_back();
  }
  while (picture.levels.size() > 2 && picture.levels.back().slots.empty() &&
         picture.levels.back().slot_count == picture.levels.front().slot_count &&
         picture.levels.back().slot_count >= 64) {
    picture.levels.pop_back();
  }
  return picture;
}

std::string state_json(Panel& panel) {
  const Machine& machine = panel.machine();
  const Picture picture = trimmed(machine.picture(panel.pending()));
  const auto timer_json = [](const auto& pair) {
    const auto& [timer, entry] = pair;
    return '{' + member("timer", timer) + ',' + member("deadline", entry.deadline) + ',' +
           member("state", quoted(name_of(entry.state))) + ',' + member("firedAt", entry.fired_at) +
           ',' + member("wasCancelled", entry.was_cancelled ? 1 : 0) + '}';
  };
  const auto rounds_json = [](const auto& pair) {
    return '[' + std::to_string(pair.first) + ',' + std::to_string(pair.second) + ']';
  };
  std::string json = '{' + member("now", machine.now());
  if (const auto wakeup = machine.next_wakeup()) json += ',' + member("nextWakeup", *wakeup);
  json += ',' + member("levels", array_of(picture.levels, level_json));
  json += ',' + member("rows", array_of(picture.rows, row_json));
  json += ',' + member("rounds", array_of(picture.rounds, rounds_json));
  json += ',' + member("timers", array_of(panel.timers(), timer_json));
  json += ',' + member("counts", counts_json(panel));
  json += ',' + member("memory", memory_json(machine));
  json += ',' + member("log", array_of(panel.take_log(), event_json));
  return json + '}';
}

// ---- Commands.

std::array<std::unique_ptr<Panel>, 2>& panels() {
  static std::array<std::unique_ptr<Panel>, 2> both;
  return both;
}

std::string failure(const std::string& reason) {
  return '{' + member("error", quoted(reason)) + '}';
}

std::string make(std::unique_ptr<Panel>& panel, const std::vector<std::string>& words) {
  std::vector<Tick> sizes;
  if (words[3] != "-") {
    for (const std::string& size : split(words[3], ',')) sizes.push_back(tick_of(size));
  }
  std::string error;
  auto machine = make_machine(words[2], sizes, tick_of(words[4]), error);
  if (machine == nullptr) return failure(error);
  panel = std::make_unique<Panel>(std::move(machine));
  return state_json(*panel);
}

std::string carry_out(const std::vector<std::string>& words) {
  if (words.size() < 3) return failure("a command has at least three words");
  std::unique_ptr<Panel>& panel = panels().at(tick_of(words[1]) % panels().size());
  const std::string& verb = words[0];
  if (verb == "make" && words.size() == 5) return make(panel, words);
  if (panel == nullptr) return failure("no queue was made");
  const Tick first = tick_of(words[2]);
  if (verb == "schedule" && words.size() == 4) {
    panel->schedule(static_cast<TimerNumber>(first), tick_of(words[3]));
  } else if (verb == "cancel") {
    panel->cancel(static_cast<TimerNumber>(first));
  } else if (verb == "advance") {
    panel->advance(first);
  } else {
    return failure("unknown command " + verb);
  }
  return state_json(*panel);
}

}  // namespace
}  // namespace playground

// The page writes a command here, and `command` answers.
extern "C" {
EMSCRIPTEN_KEEPALIVE char* command_buffer() {
  static std::array<char, 4096> buffer;
  return buffer.data();
}
EMSCRIPTEN_KEEPALIVE const char* command() {
  static std::string answer;
  answer = playground::carry_out(playground::split(command_buffer(), ' '));
  return answer.c_str();
}
}
