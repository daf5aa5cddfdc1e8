// RapidJSON's SAX reader, not in situ. Its handler gets decoded values without positions. The bytes
// of a payload are those between the places of the stream after the name and after the value.
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/json/json_contender.h"

namespace detent::bench {
namespace {

/// Fills items from the events of the reader. Each event returns false to refuse the document.
class ItemHandler {
 public:
  ItemHandler(std::string_view text, const rapidjson::MemoryStream& stream, Shape shape,
              std::vector<Item>& items)
      : text_(text),
        stream_(stream),
        items_(items),
        rules_(shape == Shape::lease_answer ? kLeasedRules : kRequestRules),
        shape_(shape),
        item_depth_(shape == Shape::request ? 1
                    : shape == Shape::batch ? 2
                                            : 3) {}

  bool has_tasks() const { return shape_ != Shape::lease_answer || has_tasks_; }

  // NOLINTBEGIN(readability-identifier-naming): the names that RapidJSON calls
  bool Null() { return scalar(); }
  bool Bool(bool /*value*/) { return scalar(); }
  bool Int(int /*value*/) { return false; }  // numbers come as text
  bool Uint(unsigned /*value*/) { return false; }
  bool Int64(std::int64_t /*value*/) { return false; }
  bool Uint64(std::uint64_t /*value*/) { return false; }
  bool Double(double /*value*/) { return false; }

  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    if (is_skipping()) return scalar();
    std::uint64_t Item::*number = nullptr;
    if (depth_ == item_depth_ && field_->kind == ItemFieldKind::number) number = field_->number;
    if (depth_ == item_depth_ + 1 && field_->kind == ItemFieldKind::backoff) number = backoff_;
    if (number == nullptr) return scalar();
    const auto read = std::from_chars(digits, digits + size, items_.back().*number);
    return read.ec == std::errc() && read.ptr == digits + size;
  }

  bool String(const char* characters, rapidjson::SizeType size, bool /*copy*/) {
    if (is_skipping() || depth_ < item_depth_) return scalar();
    if (depth_ == item_depth_ && field_->kind == ItemFieldKind::text) {
      (items_.back().*field_->text).assign(characters, size);
      return true;
    }
    if (depth_ > item_depth_ && field_->kind == ItemFieldKind::headers) {
      items_.back().headers.back().value.assign(characters, size);
      return true;
    }
    return scalar();
  }

  bool StartObject() {
    if (!open()) return false;
    if (is_skipping() || payload_begin_ != kNowhere) return true;
    if (depth_ == item_depth_) {
      seen_ = 0;
      items_.emplace_back();
      return true;
    }
    if (depth_ < item_depth_) return shape_ == Shape::lease_answer && depth_ == 1;
    seen_backoff_ = 0;
    return depth_ == item_depth_ + 1 &&
           (field_->kind == ItemFieldKind::backoff || field_->kind == ItemFieldKind::headers);
  }

  bool Key(const char* characters, rapidjson::SizeType size, bool /*copy*/) {
    const std::string_view name(characters, size);
    if (is_skipping() || payload_begin_ != kNowhere) return true;
    if (depth_ < item_depth_) {
      if (name != "tasks") {
        skipped_depth_ = depth_;
        return true;
      }
      if (has_tasks_) return false;
      has_tasks_ = true;
      return true;
    }
    if (depth_ == item_depth_) return begin_field(name);
    if (field_->kind == ItemFieldKind::headers) {
      items_.back().headers.emplace_back().name = name;
      return true;
    }
    const auto index = kBackoffRules.find(name);
    if (!index || !mark(seen_backoff_, *index)) return false;
    backoff_ = kBackoffRules.fields[*index].number;
    return true;
  }

  bool EndObject(rapidjson::SizeType /*count*/) { return close(); }

  bool StartArray() {
    if (!open()) return false;
    if (is_skipping() || payload_begin_ != kNowhere) return true;
    if (shape_ == Shape::batch) return depth_ == 1;
    return shape_ == Shape::lease_answer && depth_ == 2;
  }
  bool EndArray(rapidjson::SizeType /*count*/) { return close(); }
  // NOLINTEND(readability-identifier-naming)

 private:
  static constexpr std::size_t kNowhere = std::string_view::npos;

  bool is_skipping() const { return skipped_depth_ > 0; }
  bool open() { return ++depth_ <= kMostNested; }
  bool close() {
    --depth_;
    if (depth_ < item_depth_ || depth_ == skipped_depth_ || payload_begin_ != kNowhere) {
      return end_value();
    }
    return true;
  }

  /// A value of a kind that no field has. Only payloads and skipped members may have it.
  bool scalar() {
    if (!is_skipping() && payload_begin_ == kNowhere) return false;
    return end_value();
  }

  /// Ends a skipped member, or a payload, whose last byte is before the place of the stream.
  bool end_value() {
    if (is_skipping()) {
      if (depth_ == skipped_depth_) skipped_depth_ = 0;
      return true;
    }
    if (payload_begin_ == kNowhere || depth_ > item_depth_) return true;
    std::string_view payload = text_.substr(payload_begin_, stream_.Tell() - payload_begin_);
    payload.remove_prefix(payload.find(':') + 1);
    payload.remove_prefix(payload.find_first_not_of(" \t\r\n"));
    items_.back().payload = payload;
    payload_begin_ = kNowhere;
    return true;
  }

  static bool mark(std::uint32_t& seen, std::size_t index) {
    const std::uint32_t bit = std::uint32_t{1} << index;
    const bool is_new = (seen & bit) == 0;
    seen |= bit;
    return is_new;
  }

  bool begin_field(std::string_view name) {
    const auto index = rules_.find(name);
    if (!index) {
      skipped_depth_ = depth_;
      return rules_.skips_unknown;
    }
    field_ = &rules_.fields[*index];
    if (field_->kind == ItemFieldKind::payload) payload_begin_ = stream_.Tell();
    return mark(seen_, *index);
  }

  std::string_view text_;
  const rapidjson::MemoryStream& stream_;
  std::vector<Item>& items_;
  const ObjectRules& rules_;
  Shape shape_;
  int item_depth_;  // the depth of the members of an item
  int depth_ = 0;
  int skipped_depth_ = 0;  // the depth of the name of a skipped member; 0: none
  bool has_tasks_ = false;
  std::uint32_t seen_ = 0;
  std::uint32_t seen_backoff_ = 0;
  std::size_t payload_begin_ = kNowhere;
  const ItemField* field_ = nullptr;
  std::uint64_t Item::*backoff_ = nullptr;
};

class RapidjsonReader final : public JsonContender {
 public:
  bool read(std::string_view text, Shape shape, std::vector<Item>& items) override {
    constexpr unsigned kFlags =
        rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
    rapidjson::MemoryStream stream(text.data(), text.size());
    ItemHandler handler(text, stream, shape, items);
    return !reader_.Parse<kFlags>(stream, handler).IsError() && stream.Tell() == text.size() &&
           handler.has_tasks();
  }

 private:
  rapidjson::Reader reader_;
};

}  // namespace

void add_rapidjson(std::vector<NamedContender>& contenders) {
  contenders.push_back({"rapidjson", std::make_unique<RapidjsonReader>()});
}

}  // namespace detent::bench
