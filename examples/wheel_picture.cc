// Draws the picture of a wheel. Tracks of values over time become SMIL animations.
#include "wheel_picture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "svg_text.h"

namespace {

using svg::text;

// Times are in ticks.
constexpr double kSecondsPerTick = 0.5;
constexpr double kMove = 0.6;        // how long a hand or a timer moves
constexpr double kRest = 6;          // the pause at the end, before it starts again
constexpr double kShown = 4;         // how long a caption stays at least
constexpr double kBriefly = 2;       // how long a caption stays that says that a timer fires
constexpr double kPosterTick = 4.9;  // the tick to show in programs without animation

// Lengths are in user units; angles in degrees, clockwise from the top.
constexpr double kWidth = 960;
constexpr double kHeight = 440;
constexpr double kInnerRadius = 50;
constexpr double kOuterRadius = 120;

struct Point {
  double x;
  double y;
};
constexpr Point kSource{46, 366};  // the place where new timers appear

Point centre_of(std::size_t level) { return {160 + 320 * static_cast<double>(level), 200}; }

Point on_dial(std::size_t level, double angle, double radius) {
  const double radians = angle * std::numbers::pi / 180;
  const Point centre = centre_of(level);
  return {centre.x + radius * std::sin(radians), centre.y - radius * std::cos(radians)};
}

double angle_of(double turns, std::size_t slot_count) {
  return (turns + 0.5) * 360 / static_cast<double>(slot_count);
}

// Each slot has four seats, two in a row. Further timers lie in the middle of the slot.
Point seat_point(const Seat& seat, std::size_t slot_count) {
  const double middle = angle_of(static_cast<double>(seat.index), slot_count);
  if (seat.number >= 4) return on_dial(seat.level, middle, 85);
  const bool is_outer = seat.number < 2;
  const double aside = (is_outer ? 8.5 : 10.5) * (seat.number % 2 == 0 ? -1 : 1);
  return on_dial(seat.level, middle + aside, is_outer ? 102 : 73);
}

std::string text(Point point, char between = ' ') {
  return text(point.x) + between + text(point.y);
}

// "1 timer" or "3 timers".
std::string timers(std::size_t count) { return text(count) + (count == 1 ? " timer" : " timers"); }

// The values of one attribute over time. Times are added in order. A time before the last time
// counts as the last time.
class Track {
 public:
  Track(double length, std::string first) : length_(length), keys_{{0, std::move(first)}} {}

  void add(double tick, std::string value) {
    keys_.emplace_back(std::max(tick, keys_.back().first), std::move(value));
  }
  // Keeps the value until `tick`, then changes it within `duration`.
  void change(double tick, double duration, std::string value) {
    if (value == keys_.back().second) return;
    add(tick, keys_.back().second);
    add(tick + duration, std::move(value));
  }

  const std::string& last() const { return keys_.back().second; }
  const std::string& poster() const {
    const auto later = std::find_if(keys_.begin(), keys_.end(),
                                    [](const auto& key) { return key.first > kPosterTick; });
    return std::prev(later)->second;
  }

  // `what` is the start of the element: animate or animateTransform, with the attribute to change.
  std::string gliding(const std::string& what) const { return animation(what, ""); }
  std::string jumping(const std::string& what) const {
    return animation(what, " calcMode=\"discrete\"");
  }

 private:
  std::string animation(const std::string& what, const std::string& mode) const {
    std::string values;
    std::string times;
    for (const auto& [tick, value] : keys_) {
      char time[16];
      std::snprintf(time, sizeof(time), "%.4g;", tick / length_);
      times += time;
      values += value + ';';
    }
    return '<' + what + mode + " values=\"" + values + keys_.back().second + "\" keyTimes=\"" +
           times + "1\" dur=\"" + text(length_ * kSecondsPerTick) +
           "s\" repeatCount=\"indefinite\"/>";
  }

  double length_;
  std::vector<std::pair<double, std::string>> keys_;
};

// Describes in words what happens between two ticks.
class Captions {
 public:
  explicit Captions(const Recording& recording) : frames_(recording.frames) {
    double read_at = 0;
    for (std::size_t tick = 0; tick < frames_.size(); ++tick) {
      std::string move = scheduled(tick);
      if (move.empty()) move = cascaded(tick);
      const std::string caption = move.empty() ? fired(tick) : move;
      if (caption.empty() || static_cast<double>(tick) < read_at) continue;
      captions_.emplace_back(tick, caption);
      read_at = static_cast<double>(tick) + (move.empty() ? kBriefly : kShown);
    }
  }

  // Each caption with its first tick.
  const std::vector<std::pair<std::size_t, std::string>>& all() const { return captions_; }

 private:
  const std::optional<Seat>& before(std::size_t tick, std::size_t timer) const {
    static const std::optional<Seat> kNowhere;
    return tick == 0 ? kNowhere : frames_[tick - 1].seats[timer];
  }

  std::string scheduled(std::size_t tick) const {
    std::size_t count = 0;
    std::size_t overflowed = 0;
    for (std::size_t i = 0; i < frames_[tick].seats.size(); ++i) {
      const auto& now = frames_[tick].seats[i];
      if (!now || before(tick, i)) continue;
      ++count;
      if (now->level > 0) ++overflowed;
    }
    if (count == 0) return "";
    const std::string all = timers(count) + (count == 1 ? " is" : " are") + " scheduled";
    if (overflowed == 0) return all + ", due within a turn of level 0.";
    const bool one = overflowed == 1;
    return all + ". " + text(overflowed) + (one ? " is" : " are") +
           " due later than a turn of level 0 and " + (one ? "overflows" : "overflow") +
           " to the first level that reaches " + (one ? "it." : "them.");
  }

  std::string cascaded(std::size_t tick) const {
    for (std::size_t level = frames_[tick].hands.size(); level-- > 1;) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < frames_[tick].seats.size(); ++i) {
        const auto& old = before(tick, i);
        const auto& now = frames_[tick].seats[i];
        if (old && old->level == level && (!now || now->level < level)) ++count;
      }
      if (count == 0) continue;
      return "The hand of level " + text(level) + " comes to slot " +
             text(frames_[tick].hands[level]) + ": " + timers(count) + " cascade" +
             (count == 1 ? "s" : "") + " down.";
    }
    return "";
  }

  std::string fired(std::size_t tick) const {
    for (std::size_t i = 0; i < frames_[tick].seats.size(); ++i) {
      if (before(tick, i) && !frames_[tick].seats[i]) {
        return "The timer for tick " + text(tick) + " fires.";
      }
    }
    return "";
  }

  const std::vector<Frame>& frames_;
  std::vector<std::pair<std::size_t, std::string>> captions_;
};

class Picture {
 public:
  explicit Picture(const Recording& recording)
      : recording_(recording), length_(static_cast<double>(recording.frames.size()) + kRest) {}

  std::string draw() {
    begin();
    for (std::size_t level = 0; level < level_count(); ++level) {
      for (std::size_t index = 0; index < slot_count(level); ++index) draw_slot(level, index);
      draw_hand(level);
    }
    for (std::size_t timer = 0; timer < recording_.deadlines.size(); ++timer) draw_timer(timer);
    draw_words();
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr const char* kVisibility = "animate attributeName=\"visibility\"";

  std::size_t level_count() const { return recording_.frames.front().hands.size(); }
  std::size_t slot_count(std::size_t level) const {
    return recording_.frames.front().fill[level].size();
  }
  std::size_t unit(std::size_t level) const {
    return level == 0 ? 1 : slot_count(level - 1) * unit(level - 1);
  }

  void begin() {
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + text(kWidth) + ' ' +
           text(kHeight) + "\" role=\"img\" aria-labelledby=\"title what\">\n" +
           R"(<!-- Drawn by examples/04_wheel_picture.cc. -->
<title id="title">A hierarchical timing wheel turning</title>
<desc id="what">Three rings of eight slots, each with a hand. Each timer is a dot with its deadline.
A timer goes into the finest ring that reaches its deadline. When the hand of a coarse ring comes to
a slot, the timers of this slot move to finer rings. When the hand of the finest ring comes to a
timer, the timer fires.</desc>
<style>
text { fill: #1f2328; font: 14px system-ui, "DejaVu Sans", sans-serif; text-anchor: middle; }
.page { fill: #ffffff; }
.slot { fill: #0969da; stroke: #8c959f; }
.hand { stroke: #1f2328; stroke-width: 4; stroke-linecap: round; }
.hub { fill: #1f2328; }
.dot { fill: #bc4c00; }
.burst { fill: none; stroke: #bc4c00; stroke-width: 3; }
.deadline { fill: #ffffff; font-size: 10px; font-weight: bold; }
.index { fill: #656d76; font-size: 11px; }
.tick { font-size: 22px; font-weight: bold; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.page { fill: #0d1117; }
.slot { fill: #58a6ff; stroke: #6e7681; }
.hand { stroke: #e6edf3; }
.hub { fill: #e6edf3; }
.dot { fill: #ffa657; }
.burst { stroke: #ffa657; }
.deadline { fill: #0d1117; }
.index { fill: #8d96a0; }
}
</style>
<rect class="page" width="100%" height="100%"/>
)";
  }

  // Draws a slot. A slot with more timers is darker.
  void draw_slot(std::size_t level, std::size_t index) {
    const double width = 360 / static_cast<double>(slot_count(level));
    const double from = static_cast<double>(index) * width;
    Track shade(length_, shade_of(0));
    for (std::size_t tick = 0; tick < recording_.frames.size(); ++tick) {
      shade.change(static_cast<double>(tick), kMove,
                   shade_of(recording_.frames[tick].fill[level][index]));
    }
    const auto arc = [](double radius, char clockwise) {
      return 'A' + text(radius) + ' ' + text(radius) + " 0 0 " + clockwise + ' ';
    };
    svg_ += "<path class=\"slot\" fill-opacity=\"" + shade.poster() + "\" d=\"M" +
            text(on_dial(level, from, kOuterRadius)) + arc(kOuterRadius, '1') +
            text(on_dial(level, from + width, kOuterRadius)) + 'L' +
            text(on_dial(level, from + width, kInnerRadius)) + arc(kInnerRadius, '0') +
            text(on_dial(level, from, kInnerRadius)) + "Z\">" +
            shade.gliding("animate attributeName=\"fill-opacity\"") + "</path>\n";
    draw_text("index", on_dial(level, from + width / 2, kOuterRadius + 12), text(index));
  }

  static std::string shade_of(std::size_t timer_count) {
    if (timer_count == 0) return ".04";
    return "." + text(std::min<std::size_t>(timer_count * 15, 75));
  }

  // Draws a hand. Its angle only grows, so that it does not turn back from the last slot to the
  // first.
  void draw_hand(std::size_t level) {
    const std::string centre = ' ' + text(centre_of(level));
    Track angle(length_, text(angle_of(0, slot_count(level))) + centre);
    for (std::size_t tick = 0; tick < recording_.frames.size(); ++tick) {
      const std::size_t steps = tick / unit(level);
      angle.change(static_cast<double>(tick), kMove,
                   text(angle_of(static_cast<double>(steps), slot_count(level))) + centre);
    }
    const Point from = centre_of(level);
    const Point to = on_dial(level, 0, kOuterRadius - 6);
    svg_ += "<g transform=\"rotate(" + angle.poster() + ")\"><line class=\"hand\" x1=\"" +
            text(from.x) + "\" y1=\"" + text(from.y) + "\" x2=\"" + text(to.x) + "\" y2=\"" +
            text(to.y) + "\"/>" +
            angle.gliding("animateTransform attributeName=\"transform\" type=\"rotate\"") +
            "</g>\n<circle class=\"hub\" cx=\"" + text(from.x) + "\" cy=\"" + text(from.y) +
            "\" r=\"7\"/>\n";
  }

  // Draws a timer: it passes the levels until one accepts it, cascades, fires and disappears.
  void draw_timer(std::size_t timer) {
    Track place(length_, text(kSource, ','));
    Track visible(length_, "hidden");
    Track burst(length_, "10");
    std::optional<Seat> seat;
    for (std::size_t tick = 0; tick < recording_.frames.size(); ++tick) {
      const std::optional<Seat>& now = recording_.frames[tick].seats[timer];
      auto at = static_cast<double>(tick);
      if (now == seat) continue;
      if (!seat) {
        visible.add(at, "visible");
        for (std::size_t level = 0; level < now->level; ++level, at += kMove) {
          place.change(at, kMove, text(centre_of(level), ','));
        }
      }
      if (now) {
        place.change(at, kMove, text(seat_point(*now, slot_count(now->level)), ','));
      } else {
        if (seat->level > 0) {  // it cascades to the hand's slot and fires there
          const Seat last{0, recording_.frames[tick].hands[0], 4};
          place.change(at, kMove, text(seat_point(last, slot_count(0)), ','));
        }
        burst.change(at + kMove, kMove, "26");
        visible.add(at + 2 * kMove, "hidden");
      }
      seat = now;
    }
    svg_ += "<g visibility=\"" + visible.poster() + "\" transform=\"translate(" + place.poster() +
            ")\">" + visible.jumping(kVisibility) +
            place.gliding("animateTransform attributeName=\"transform\" type=\"translate\"") +
            "<circle class=\"burst\" r=\"" + burst.poster() + "\">" +
            burst.gliding("animate attributeName=\"r\"") +
            "</circle><circle class=\"dot\" r=\"11\"/>" + "<text class=\"deadline\" y=\"3.5\">" +
            text(recording_.deadlines[timer]) + "</text></g>\n";
  }

  void draw_words() {
    for (std::size_t level = 0; level < level_count(); ++level) {
      const Point centre = centre_of(level);
      draw_text("", {centre.x, 40},
                "level " + text(level) + ": a slot is " + text(unit(level)) +
                    (level == 0 ? " tick" : " ticks"));
    }
    draw_text("index", {kSource.x, kSource.y + 24}, "new timers");
    for (std::size_t tick = 0; tick < recording_.frames.size(); ++tick) {
      const bool is_last = tick + 1 == recording_.frames.size();
      draw_while({tick, is_last ? std::nullopt : std::optional(tick + 1)}, "tick", 376,
                 "tick " + text(tick));
    }
    const Captions captions(recording_);
    const auto& all = captions.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_last = i + 1 == all.size();
      draw_while({all[i].first, is_last ? std::nullopt : std::optional(all[i + 1].first)}, "", 412,
                 all[i].second);
    }
  }

  // A span of ticks. Without `to`, until the end.
  struct Span {
    std::size_t from = 0;
    std::optional<std::size_t> to = std::nullopt;
  };

  void draw_while(const Span& shown, const std::string& kind, double y, const std::string& words) {
    Track visible(length_, shown.from == 0 ? "visible" : "hidden");
    if (shown.from != 0) visible.add(static_cast<double>(shown.from), "visible");
    if (shown.to) visible.add(static_cast<double>(*shown.to), "hidden");
    svg_ += "<g visibility=\"" + visible.poster() + "\">" + visible.jumping(kVisibility);
    draw_text(kind, {kWidth / 2, y}, words);
    svg_ += "</g>\n";
  }

  void draw_text(const std::string& kind, Point at, const std::string& words) {
    svg_ += "<text" + (kind.empty() ? "" : " class=\"" + kind + '"') + " x=\"" + text(at.x) +
            "\" y=\"" + text(at.y + 4) + "\">" + words + "</text>\n";
  }

  const Recording& recording_;
  double length_;
  std::string svg_;
};

}  // namespace

std::string draw(const Recording& recording) { return Picture(recording).draw(); }
