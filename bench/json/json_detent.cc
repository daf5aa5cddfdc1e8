// Our reader, with the calls of the server: take_elements() splits a batch, take_members() finds
// the members of each object, and read_string() and read_integer() read them.
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/json/json_contender.h"
#include "protocol/json/json_fields.h"

namespace detent::bench {
namespace {

using json::JsonField;
using json::JsonKind;
using json::JsonReader;

class DetentReader final : public JsonContender {
 public:
  bool read(std::string_view text, Shape shape, std::vector<Item>& items) override {
    if (shape == Shape::request) return read_object(text, kRequestRules, items.emplace_back());
    constexpr std::size_t kMostElements = 10'000;
    const auto elements = shape == Shape::batch ? json::take_elements(text, kMostElements)
                                                : json::take_list(text, "tasks");
    if (!elements) return false;
    const ObjectRules& rules = shape == Shape::batch ? kRequestRules : kLeasedRules;
    items.reserve(elements->size());
    for (const std::string_view element : *elements) {
      if (!read_object(element, rules, items.emplace_back())) return false;
    }
    return true;
  }

 private:
  static bool read_object(std::string_view text, const ObjectRules& rules, Item& item) {
    std::array<JsonField, kMostFields> slots;
    const auto unknown =
        rules.skips_unknown ? json::UnknownFields::skip : json::UnknownFields::refuse;
    const auto taken = json::take_members(text, unknown, [&](std::string_view name) {
      const auto index = rules.find(name);
      return index ? &slots.at(*index) : nullptr;
    });
    if (!taken) return false;
    for (std::size_t i = 0; i < rules.fields.size(); ++i) {
      if (slots.at(i).given() && !read_field(slots.at(i), rules.fields[i], item)) return false;
    }
    return true;
  }

  static bool read_field(const JsonField& slot, const ItemField& field, Item& item) {
    switch (field.kind) {
      case ItemFieldKind::text: {
        auto text = json::read_string(slot);
        if (!text) return false;
        item.*field.text = *std::move(text);
        return true;
      }
      case ItemFieldKind::number: {
        const auto number = json::read_integer(slot, {});
        if (number) item.*field.number = *number;
        return number.has_value();
      }
      case ItemFieldKind::payload:
        item.payload = slot.text;
        return true;
      case ItemFieldKind::backoff:
        return read_object(slot.text, kBackoffRules, item);
      case ItemFieldKind::headers:
        return read_headers(slot.text, item);
    }
    return false;
  }

  static bool read_headers(std::string_view text, Item& item) {
    JsonReader reader(text);
    if (!reader.enter_object()) return false;
    while (const auto member = reader.next_member()) {
      if (json::kind_of(member->value) != JsonKind::string) return false;
      item.headers.push_back({json::unescape(member->name), json::unescape(member->value)});
    }
    return true;
  }
};

/// Scans the document once and fills nothing.
class ScanReader final : public JsonContender {
 public:
  bool read(std::string_view text, Shape /*shape*/, std::vector<Item>& /*items*/) override {
    return json::read_json(text).has_value();
  }
};

}  // namespace

void add_scan(std::vector<NamedContender>& contenders) {
  contenders.push_back({"detent-scan", std::make_unique<ScanReader>()});
}

void add_detent(std::vector<NamedContender>& contenders) {
  contenders.push_back({"detent", std::make_unique<DetentReader>()});
}

}  // namespace detent::bench
