// Draws the figures of the designs: a grid of panels, two side by side.
#include "design_picture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "svg_text.h"

namespace {

using detent::Tick;
using svg::text;

// Lengths are in user units; angles in degrees, clockwise from the top.
constexpr double kPanelWidth = 460;
constexpr double kMargin = 20;
constexpr double kTitleHeight = 34;
constexpr double kStripHeight = 62;
constexpr double kBoxesHeight = 58;
constexpr double kLineHeight = 18;
constexpr double kLetter = 7.4;     // more than the average width of a letter
constexpr double kStripLeft = 118;  // the row of slots begins after the name of the level
constexpr double kSlotBar = 22;     // the height of a row of slots
// The words that are drawn into each figure.
struct Words {
  const char* legend;
  const char* slot_legend;
  const char* before_hand;  // the number of a slot is between the two parts
  const char* after_hand;
  const char* fires;
  const char* empty;
};
constexpr Words kEnglish{
    "Orange: the timer of the example.",
    " \u201c17: 350\u201d: slot 17 holds the timer for tick 350. Black (white on a dark page): the "
    "hand.",
    "hand at slot ",
    "",
    " fires",
    "(empty)"};
constexpr Words kChinese{
    "橙色：例子里的定时器。",
    "“17: 350”：第 17 槽里有刻度 350 的定时器。黑色（深色页面上是白色）：指针。",
    "指针在第 ",
    " 槽",
    " 触发",
    "（空）"};
constexpr std::size_t kCaptionLetters = 62;
constexpr std::size_t kEachSlotShown = 64;  // a level with more slots shows only every 16th border

struct Point {
  double x = 0;
  double y = 0;
};

std::string text(Point point) { return text(point.x) + ' ' + text(point.y); }

std::string escaped(const std::string& words) {
  std::string result;
  for (const char letter : words) {
    if (letter == '&') {
      result += "&amp;";
    } else if (letter == '<') {
      result += "&lt;";
    } else {
      result += letter;
    }
  }
  return result;
}

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }
// A Chinese letter is twice as wide as others. In UTF-8 it begins with a byte from 0xE3 on.
bool is_wide(char byte) { return static_cast<unsigned char>(byte) >= 0xE3; }

// Counts letters; a letter may be several bytes of UTF-8. The width is enough for bold letters.
double width_of(const std::string& words) {
  const auto letters = std::count_if(words.begin(), words.end(), begins_letter) +
                       std::count_if(words.begin(), words.end(), is_wide);
  return static_cast<double>(letters) * kLetter;
}

// Parts of a text that stay on one line: words with the space after them, and Chinese letters with
// the punctuation after them.
std::vector<std::string> parts_of(const std::string& words) {
  const std::string closing = "，。：；、）”";
  std::vector<std::string> parts{""};
  for (std::size_t begin = 0; begin < words.size();) {
    std::size_t end = begin + 1;
    while (end < words.size() && !begins_letter(words[end])) ++end;
    const std::string letter = words.substr(begin, end - begin);
    const std::string& last = parts.back();
    const bool is_beside_wide = is_wide(letter[0]) || (!last.empty() && is_wide(last[0]));
    const bool may_begin = letter != " " && closing.find(letter) == std::string::npos;
    if (!last.empty() && may_begin && (last.back() == ' ' || is_beside_wide)) parts.emplace_back();
    parts.back() += letter;
    begin = end;
  }
  return parts;
}

std::vector<std::string> wrapped(const std::string& words) {
  const auto size_of = [](const std::string& line) {
    return line.size() - static_cast<std::size_t>(std::count_if(line.begin(), line.end(), is_wide));
  };
  std::vector<std::string> lines{""};
  for (const std::string& part : parts_of(words)) {
    const std::size_t space = part.back() == ' ' ? 1 : 0;
    if (size_of(lines.back()) + size_of(part) - space > kCaptionLetters) lines.emplace_back();
    lines.back() += part;
  }
  for (std::string& line : lines) {
    if (!line.empty() && line.back() == ' ') line.pop_back();
  }
  return lines;
}

double radius_of(const Dials& dials) { return dials.levels.size() == 1 ? 84 : 50; }

double height_of(const PictureRow& row) {
  if (const auto* dials = std::get_if<Dials>(&row))
    return 2 * radius_of(*dials) + (dials->levels.size() == 1 ? 98 : 116);
  return std::holds_alternative<Strip>(row) ? kStripHeight : kBoxesHeight;
}

double height_of(const Moment& moment) {
  double height = kTitleHeight + kMargin;
  for (const PictureRow& row : moment.rows) height += height_of(row);
  return height + static_cast<double>(wrapped(moment.caption).size()) * kLineHeight;
}

class Picture {
 public:
  Picture(const Figure& figure, const Words& words) : figure_(figure), words_(words) {}

  std::string draw() {
    const std::vector<Moment>& moments = figure_.moments;
    double top = kMargin / 2;
    for (std::size_t first = 0; first < moments.size(); first += 2) {
      double height = 0;
      for (std::size_t i = first; i < std::min(first + 2, moments.size()); ++i) {
        const double left = kMargin + static_cast<double>(i - first) * (kPanelWidth + kMargin);
        draw_moment(i, {left, top});
        height = std::max(height, height_of(moments[i]));
      }
      top += height;
    }
    draw_text("small", {kMargin, top + 8},
              std::string(words_.legend) + (has_slots() ? words_.slot_legend : ""));
    return head(top + kMargin) + svg_ + "</svg>\n";
  }

 private:
  bool has_slots() const {
    const std::vector<PictureRow>& rows = figure_.moments.front().rows;
    return std::any_of(rows.begin(), rows.end(),
                       [](const PictureRow& row) { return !std::holds_alternative<Boxes>(row); });
  }

  std::string head(double height) const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
           text(2 * kPanelWidth + 3 * kMargin) + ' ' + text(height) +
           "\" role=\"img\" aria-labelledby=\"title what\">\n"
           "<!-- Drawn by examples/16_design_figures.cc from the real queue. -->\n"
           "<title id=\"title\">" +
           escaped(figure_.title) + "</title>\n<desc id=\"what\">" + escaped(figure_.description) +
           "</desc>\n" + R"(<style>
text { fill: #1f2328; font: 13px system-ui, "DejaVu Sans", sans-serif; }
.page { fill: #ffffff; }
.title { font-size: 16px; font-weight: bold; }
.small { fill: #656d76; font-size: 11px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.line { fill: none; stroke: #8c959f; }
.thin { stroke: #d0d7de; }
.hand { stroke: #1f2328; stroke-width: 3; stroke-linecap: round; }
.now { fill: #1f2328; }
.other { fill: #0969da; }
.ours { fill: #bc4c00; }
.fired { fill: none; stroke: #bc4c00; stroke-width: 2; }
text.ours { font-weight: bold; }
.box { fill: #f6f8fa; stroke: #8c959f; }
.box.mine { stroke: #bc4c00; stroke-width: 2; }
.faded { opacity: .45; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.page { fill: #0d1117; }
.small { fill: #8d96a0; }
.line { stroke: #6e7681; }
.thin { stroke: #30363d; }
.hand { stroke: #e6edf3; }
.now { fill: #e6edf3; }
.other { fill: #58a6ff; }
.ours { fill: #ffa657; }
.fired { stroke: #ffa657; }
.box { fill: #161b22; stroke: #6e7681; }
.box.mine { stroke: #ffa657; }
}
</style>
<rect class="page" width="100%" height="100%"/>
)";
  }

  void draw_moment(std::size_t number, Point at) {
    const Moment& moment = figure_.moments[number];
    draw_text("title", {at.x, at.y + 20}, text(number + 1) + ".  " + moment.title);
    at.y += kTitleHeight;
    for (const PictureRow& row : moment.rows) {
      std::visit([this, at](const auto& kind) { draw_row(kind, at); }, row);
      at.y += height_of(row);
    }
    for (const std::string& line : wrapped(moment.caption)) {
      draw_text("", {at.x, at.y + 12}, line);
      at.y += kLineHeight;
    }
  }

  bool is_ours(const SlotPicture& slot) const {
    const auto has_ours = [this](const std::vector<Tick>& deadlines) {
      return std::find(deadlines.begin(), deadlines.end(), figure_.ours) != deadlines.end();
    };
    return has_ours(slot.deadlines) || has_ours(slot.fired);
  }
  std::string class_of(const SlotPicture& slot) const {
    if (slot.deadlines.empty()) return "fired";
    return is_ours(slot) ? "ours" : "other";
  }
  std::string hand_text(std::size_t slot) const {
    return words_.before_hand + text(slot) + words_.after_hand;
  }
  // "5: 350", or "30: 350 fires, 414".
  std::string label_of(const SlotPicture& slot) const {
    std::string words;
    for (const Tick deadline : slot.fired) words += ", " + std::to_string(deadline) + words_.fires;
    for (const Tick deadline : slot.deadlines) words += ", " + std::to_string(deadline);
    return text(slot.index) + ':' + words.substr(1);
  }

  // ---- Rings.

  struct Ring {
    Point centre{};
    double radius = 0;
    double slot_count = 1;

    double inner() const { return 0.7 * radius; }
    Point at(double slot, double distance) const {
      const double radians = slot / slot_count * 2 * std::numbers::pi;
      return {centre.x + distance * std::sin(radians), centre.y - distance * std::cos(radians)};
    }
  };

  void draw_row(const Dials& dials, Point at) {
    const double step = kPanelWidth / static_cast<double>(dials.levels.size());
    for (std::size_t i = 0; i < dials.levels.size(); ++i) {
      const LevelPicture& level = dials.levels[i];
      const double radius = radius_of(dials);
      const Ring ring{{at.x + step * (static_cast<double>(i) + 0.5), at.y + radius + 26},
                      radius,
                      static_cast<double>(level.slot_count)};
      draw_ring(level, ring);
      const double below = ring.centre.y + radius + 38;
      draw_text("middle", {ring.centre.x, below}, level.name);
      if (level.hand) {
        draw_text("small middle", {ring.centre.x, below + 15}, hand_text(*level.hand));
      }
      double line = below + 15;
      for (const SlotPicture& slot : level.slots) {
        if (dials.levels.size() == 1) {
          draw_label_beside(slot, ring);
        } else {
          line += kLineHeight;
          draw_text(is_ours(slot) ? "middle ours" : "middle", {ring.centre.x, line},
                    label_of(slot));
        }
      }
    }
  }

  void draw_ring(const LevelPicture& level, const Ring& ring) {
    const std::size_t step = level.slot_count <= kEachSlotShown ? 1 : 16;
    std::string borders;
    for (std::size_t slot = 0; slot < level.slot_count; slot += step) {
      const auto place = static_cast<double>(slot);
      borders += 'M' + text(ring.at(place, ring.inner())) + 'L' + text(ring.at(place, ring.radius));
    }
    draw_path("line thin", borders);
    for (const double radius : {ring.radius, ring.inner()}) {
      svg_ += "<circle class=\"line\" cx=\"" + text(ring.centre.x) + "\" cy=\"" +
              text(ring.centre.y) + "\" r=\"" + text(radius) + "\"/>\n";
    }
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::size_t slot = quarter * level.slot_count / 4;
      const Point at = ring.at(static_cast<double>(slot) + 0.5, ring.inner() - 11);
      draw_text("small middle", {at.x, at.y + 4}, text(slot));
    }
    for (const SlotPicture& slot : level.slots) draw_wedge(slot, ring);
    if (level.hand) {
      const double middle = static_cast<double>(*level.hand) + 0.5;
      draw_line("hand", ring.centre, ring.at(middle, ring.inner() - 20));
      draw_line("hand", ring.at(middle, ring.inner()), ring.at(middle, ring.radius));
    }
  }

  void draw_wedge(const SlotPicture& slot, const Ring& ring) {
    const double middle = static_cast<double>(slot.index) + 0.5;
    const double half = std::max(0.5, 0.009 * ring.slot_count);  // wide enough to be seen
    const auto arc = [](double radius, char clockwise) {
      return 'A' + text(radius) + ' ' + text(radius) + " 0 0 " + clockwise + ' ';
    };
    draw_path(class_of(slot),
              'M' + text(ring.at(middle - half, ring.radius)) + arc(ring.radius, '1') +
                  text(ring.at(middle + half, ring.radius)) + 'L' +
                  text(ring.at(middle + half, ring.inner())) + arc(ring.inner(), '0') +
                  text(ring.at(middle - half, ring.inner())) + 'Z');
  }

  void draw_label_beside(const SlotPicture& slot, const Ring& ring) {
    const Point at = ring.at(static_cast<double>(slot.index) + 0.5, ring.radius + 10);
    const double aside = (at.x - ring.centre.x) / ring.radius;
    const std::string anchor = aside > 0.3 ? "" : aside < -0.3 ? "end " : "middle ";
    draw_text(anchor + (is_ours(slot) ? "ours" : ""), {at.x, at.y + 4}, label_of(slot));
  }

  // ---- Rows of slots, and boxes.

  void draw_row(const Strip& strip, Point at) {
    const LevelPicture& level = strip.level;
    draw_text("", {at.x, at.y + 14}, level.name);
    if (level.hand) draw_text("small", {at.x, at.y + 29}, hand_text(*level.hand));
    const double left = at.x + kStripLeft;
    const double width = kPanelWidth - kStripLeft;
    const double each = width / static_cast<double>(level.slot_count);
    const std::size_t step = level.slot_count <= kEachSlotShown ? 1 : 16;
    std::string borders;
    for (std::size_t slot = step; slot < level.slot_count; slot += step) {
      borders += 'M' + text({left + static_cast<double>(slot) * each, at.y}) + 'v' + text(kSlotBar);
    }
    draw_path("line thin", borders);
    draw_rect("line", {left, at.y}, {width, kSlotBar});
    const auto draw_slot = [&](const std::string& kind, std::size_t slot, double least) {
      const double wide = std::max(each, least);
      const double middle = left + (static_cast<double>(slot) + 0.5) * each;
      draw_rect(kind, {middle - wide / 2, at.y}, {wide, kSlotBar});
    };
    for (const SlotPicture& slot : level.slots) draw_slot(class_of(slot), slot.index, 4);
    if (level.hand) draw_slot("now", *level.hand, 2);
    draw_labels(level, {left, at.y + kSlotBar + 15}, each);
  }

  // Writes the labels below their slots, from left to right without overlaps.
  void draw_labels(const LevelPicture& level, Point at, double each) {
    double free_from = at.x;
    double room = 0;
    for (const SlotPicture& slot : level.slots) room += width_of(label_of(slot)) + 8;
    for (const SlotPicture& slot : level.slots) {
      const std::string label = label_of(slot);
      const double width = width_of(label);
      const double wanted = at.x + (static_cast<double>(slot.index) + 0.5) * each - width / 2;
      const double last = at.x - kStripLeft + kPanelWidth - room + 8;
      const double x = std::max(free_from, std::min(wanted, last));
      draw_text(is_ours(slot) ? "ours" : "", {x, at.y}, label);
      free_from = x + width + 8;
      room -= width + 8;
    }
  }

  void draw_row(const Boxes& row, Point at) {
    draw_text("small", {at.x, at.y + 10}, row.name);
    double left = at.x;
    for (const Box& box : row.boxes) {
      const double width = width_of(box.text) + 14;
      draw_rect(std::string("box") + (box.is_ours ? " mine" : "") + (box.is_faded ? " faded" : ""),
                {left, at.y + 16}, {width, 24});
      draw_text(
          std::string("middle") + (box.is_ours ? " ours" : "") + (box.is_faded ? " faded" : ""),
          {left + width / 2, at.y + 32}, box.text);
      left += width + 6;
    }
    if (row.boxes.empty()) draw_text("small", {left, at.y + 32}, words_.empty);
  }

  // ---- Elements.

  static std::string class_attribute(const std::string& kind) {
    return kind.empty() ? "" : " class=\"" + kind + '"';
  }
  void draw_line(const std::string& kind, Point from, Point to) {
    svg_ += "<line" + class_attribute(kind) + " x1=\"" + text(from.x) + "\" y1=\"" + text(from.y) +
            "\" x2=\"" + text(to.x) + "\" y2=\"" + text(to.y) + "\"/>\n";
  }
  void draw_path(const std::string& kind, const std::string& path) {
    svg_ += "<path" + class_attribute(kind) + " d=\"" + path + "\"/>\n";
  }
  void draw_rect(const std::string& kind, Point at, Point size) {
    svg_ += "<rect" + class_attribute(kind) + " x=\"" + text(at.x) + "\" y=\"" + text(at.y) +
            "\" width=\"" + text(size.x) + "\" height=\"" + text(size.y) + "\"/>\n";
  }
  void draw_text(const std::string& kind, Point at, const std::string& words) {
    svg_ += "<text" + class_attribute(kind) + " x=\"" + text(at.x) + "\" y=\"" + text(at.y) +
            "\">" + escaped(words) + "</text>\n";
  }

  const Figure& figure_;
  const Words& words_;
  std::string svg_;
};

}  // namespace

std::string draw(const Figure& figure, Language language) {
  return Picture(figure, language == Language::english ? kEnglish : kChinese).draw();
}
