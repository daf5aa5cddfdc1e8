// Our reader, with the calls of the server: JsonDocument reads the text, take_members() finds the
// members of each object, and read_string() and read_integer() read them.
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/json/json_contender.h"
#include "protocol/json/json_fields.h"

namespace detent::bench {
namespace {

using json::JsonDocument;
using json::JsonField;
using json::JsonKind;
using json::JsonValue;

class DetentReader final : public JsonContender {
 public:
  bool read(std::string_view text, Shape shape, std::vector<Item>& items) override {
    constexpr std::size_t kMostElements = 10'000;
    JsonDocument document;
    const auto root = shape == Shape::lease_answer ? json::take_list(document, text, "tasks")
                                                   : document.read(text);
    if (!root) return false;
    if (shape == Shape::request) return read_object(**root, kRequestRules, items.emplace_back());
    const auto count = json::count_elements(**root, kMostElements);
    if (!count) return false;
    const ObjectRules& rules = shape == Shape::batch ? kRequestRules : kLeasedRules;
    items.reserve(*count);
    for (const JsonValue& element : **root) {
      if (!read_object(element, rules, items.emplace_back())) return false;
    }
    return true;
  }

 private:
  static bool read_object(const JsonValue& object, const ObjectRules& rules, Item& item) {
    std::array<JsonField, kMostFields> slots;
    const auto unknown =
        rules.skips_unknown ? json::UnknownFields::skip : json::UnknownFields::refuse;
    const auto taken = json::take_members(object, unknown, [&](std::string_view name) {
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
        item.payload = slot.value->text;
        return true;
      case ItemFieldKind::backoff:
        return read_object(*slot.value, kBackoffRules, item);
      case ItemFieldKind::headers:
        return read_headers(*slot.value, item);
    }
    return false;
  }

  static bool read_headers(const JsonValue& object, Item& item) {
    if (json::kind_of(object.text) != JsonKind::object) return false;
    for (const JsonValue& member : object) {
      if (json::kind_of(member.text) != JsonKind::string) return false;
      item.headers.push_back({json::unescape(member.name), json::unescape(member.text)});
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
