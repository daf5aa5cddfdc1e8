// simdjson's On-Demand parser. It has three variants:
//
//  - simdjson: copies the document into a padded buffer, and checks what our reader checks. For
//    that it visits every value of a payload, because raw_json() only counts brackets.
//  - simdjson-raw: the same, but takes a payload as raw_json() returns it, without visiting it
//  - simdjson-padded: as simdjson-raw, without the copy. The document is already padded.
#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/json/json_contender.h"
#include "protocol/json/json_reader.h"

namespace detent::bench {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(kPaddingBytes >= simdjson::SIMDJSON_PADDING);

enum class PayloadCheck : std::uint8_t { every_value, brackets };
enum class Padding : std::uint8_t { copied, present };

class SimdjsonReader final : public JsonContender {
 public:
  SimdjsonReader(PayloadCheck check, Padding padding) : check_(check), padding_(padding) {}

  bool read(std::string_view text, Shape shape, std::vector<Item>& items) override {
    ondemand::document document;
    if (parser_.iterate(padded(text)).get(document) != simdjson::SUCCESS) return false;
    return read_document(document, shape, items) &&
           document.current_location().error() == simdjson::OUT_OF_BOUNDS;  // nothing is left
  }

 private:
  simdjson::padded_string_view padded(std::string_view text) {
    if (padding_ == Padding::present) {
      return simdjson::padded_string_view(text.data(), text.size(), text.size() + kPaddingBytes);
    }
    buffer_.reserve(text.size() + kPaddingBytes);
    buffer_.assign(text);
    return simdjson::padded_string_view(buffer_.data(), text.size(), buffer_.capacity());
  }

  bool read_document(ondemand::document& document, Shape shape, std::vector<Item>& items) {
    if (shape == Shape::batch) {
      ondemand::array array;
      return document.get_array().get(array) == simdjson::SUCCESS &&
             read_items(array, kRequestRules, items);
    }
    ondemand::object object;
    if (document.get_object().get(object) != simdjson::SUCCESS) return false;
    if (shape == Shape::request) return read_object(object, kRequestRules, items.emplace_back(), 1);
    bool has_tasks = false;
    for (auto member : object) {
      std::string_view name;
      ondemand::value value;
      if (!take(member, name, value)) return false;
      if (name != "tasks") {
        if (!skip(value, 1)) return false;
        continue;
      }
      ondemand::array array;
      if (has_tasks || value.get_array().get(array) != simdjson::SUCCESS) return false;
      has_tasks = true;
      if (!read_items(array, kLeasedRules, items)) return false;
    }
    return has_tasks;
  }

  bool read_items(ondemand::array array, const ObjectRules& rules, std::vector<Item>& items) {
    const int depth = rules.skips_unknown ? 3 : 2;
    for (auto element : array) {
      ondemand::object object;
      if (element.get_object().get(object) != simdjson::SUCCESS) return false;
      if (!read_object(object, rules, items.emplace_back(), depth)) return false;
    }
    return true;
  }

  /// Splits a member into name and value.
  static bool take(simdjson::simdjson_result<ondemand::field>& member, std::string_view& name,
                   ondemand::value& value) {
    return member.unescaped_key().get(name) == simdjson::SUCCESS &&
           member.value().get(value) == simdjson::SUCCESS;
  }

  /// `depth` is the number of arrays and objects that are open, with this one.
  bool read_object(ondemand::object object, const ObjectRules& rules, Item& item, int depth) {
    std::uint32_t seen = 0;
    for (auto member : object) {
      std::string_view name;
      ondemand::value value;
      if (!take(member, name, value)) return false;
      const auto index = rules.find(name);
      if (!index) {
        if (!rules.skips_unknown || !skip(value, depth)) return false;
        continue;
      }
      const std::uint32_t bit = std::uint32_t{1} << *index;
      if ((seen & bit) != 0) return false;
      seen |= bit;
      if (!read_field(value, rules.fields[*index], item, depth)) return false;
    }
    return true;
  }

  bool read_field(ondemand::value value, const ItemField& field, Item& item, int depth) {
    switch (field.kind) {
      case ItemFieldKind::text:
        return read_text(value, item.*field.text);
      case ItemFieldKind::number:
        return value.get_uint64().get(item.*field.number) == simdjson::SUCCESS;
      case ItemFieldKind::payload:
        return read_payload(value, item.payload, depth);
      case ItemFieldKind::backoff: {
        ondemand::object object;
        return value.get_object().get(object) == simdjson::SUCCESS &&
               read_object(object, kBackoffRules, item, depth + 1);
      }
      case ItemFieldKind::headers:
        return read_headers(value, item);
    }
    return false;
  }

  static bool read_text(ondemand::value value, std::string& text) {
    std::string_view view;
    if (value.get_string().get(view) != simdjson::SUCCESS) return false;
    text = view;
    return true;
  }

  static bool read_headers(ondemand::value value, Item& item) {
    ondemand::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return false;
    for (auto member : object) {
      std::string_view name;
      ondemand::value text;
      if (!take(member, name, text)) return false;
      ItemHeader& header = item.headers.emplace_back();
      header.name = name;
      if (!read_text(text, header.value)) return false;
    }
    return true;
  }

  /// Keeps the bytes of the value, then checks the value.
  bool read_payload(ondemand::value value, std::string& payload, int depth) {
    ondemand::json_type type{};
    std::string_view raw;
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    if (type == ondemand::json_type::object)
      return keep_nested<ondemand::object>(value, payload, depth);
    if (type == ondemand::json_type::array)
      return keep_nested<ondemand::array>(value, payload, depth);
    if (simdjson::to_json_string(value).get(raw) != simdjson::SUCCESS) return false;
    payload = raw;
    return skip(value, depth);
  }

  template <class Nested>
  bool keep_nested(ondemand::value value, std::string& payload, int depth) {
    Nested nested;
    std::string_view raw;
    if (value.get(nested) != simdjson::SUCCESS) return false;
    if (simdjson::to_json_string(nested).get(raw) != simdjson::SUCCESS) return false;
    payload = raw;
    if (check_ == PayloadCheck::brackets) return true;
    return nested.reset().error() == simdjson::SUCCESS && check_nested(nested, depth + 1);
  }

  /// Leaves out a value that is checked like a payload.
  bool skip(ondemand::value value, int depth) {
    return check_ == PayloadCheck::brackets || check(value, depth);
  }

  static bool check_nested(ondemand::object object, int depth) {
    if (depth > kMostNested) return false;
    for (auto member : object) {
      std::string_view name;
      ondemand::value value;
      if (!take(member, name, value) || !check(value, depth)) return false;
    }
    return true;
  }
  static bool check_nested(ondemand::array array, int depth) {
    if (depth > kMostNested) return false;
    for (auto element : array) {
      ondemand::value value;
      if (element.get(value) != simdjson::SUCCESS || !check(value, depth)) return false;
    }
    return true;
  }

  static bool check(ondemand::value value, int depth) {
    ondemand::json_type type{};
    if (value.type().get(type) != simdjson::SUCCESS) return false;
    switch (type) {
      case ondemand::json_type::object: {
        ondemand::object object;
        return value.get(object) == simdjson::SUCCESS && check_nested(object, depth + 1);
      }
      case ondemand::json_type::array: {
        ondemand::array array;
        return value.get(array) == simdjson::SUCCESS && check_nested(array, depth + 1);
      }
      case ondemand::json_type::string:
        return value.get_string().error() == simdjson::SUCCESS;
      case ondemand::json_type::number:
        // get_number() refuses integers of more than 64 bits and 1e400, which a payload may have.
        return json::read_json(value.raw_json_token()).has_value();
      case ondemand::json_type::boolean:
        return value.get_bool().error() == simdjson::SUCCESS;
      case ondemand::json_type::null: {
        const auto is_null = value.is_null();
        return is_null.error() == simdjson::SUCCESS && is_null.value_unsafe();
      }
    }
    return false;
  }

  PayloadCheck check_;
  Padding padding_;
  ondemand::parser parser_;
  std::string buffer_;
};

}  // namespace

void add_simdjson(std::vector<NamedContender>& contenders) {
  const auto add = [&](const char* name, PayloadCheck check, Padding padding) {
    contenders.push_back({name, std::make_unique<SimdjsonReader>(check, padding)});
  };
  add("simdjson", PayloadCheck::every_value, Padding::copied);
  add("simdjson-raw", PayloadCheck::brackets, Padding::copied);
  add("simdjson-padded", PayloadCheck::brackets, Padding::present);
}

}  // namespace detent::bench
