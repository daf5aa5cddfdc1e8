// The parts that the JSON readers of json_bench share: the documents, the struct that they fill,
// and the fields of each object. So the readers differ only in the parser.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace detent::bench {

/// The largest number of nested arrays and objects, as in protocol/json/json_reader.h.
inline constexpr int kMostNested = 100;
/// The bytes after each document that a reader may read but must not use.
inline constexpr std::size_t kPaddingBytes = 64;

struct ItemHeader {
  std::string name;
  std::string value;

  friend bool operator==(const ItemHeader&, const ItemHeader&) = default;
};

/// A schedule request or a leased task. A document sets a part of the members.
struct Item {
  std::string queue;
  std::string payload;  // JSON, byte for byte as in the document
  std::string key;
  std::string webhook;
  std::string id;
  std::string lease;
  std::string due_at;
  std::string lease_until;
  std::vector<ItemHeader> headers;
  std::uint64_t delay_ms = 0;
  std::uint64_t priority = 0;
  std::uint64_t max_attempts = 0;
  std::uint64_t visibility_timeout_ms = 0;
  std::uint64_t backoff_initial_ms = 0;
  std::uint64_t backoff_max_ms = 0;
  std::uint64_t attempt = 0;
  std::uint64_t lateness_ms = 0;

  friend bool operator==(const Item&, const Item&) = default;
};

enum class ItemFieldKind : std::uint8_t { text, number, payload, headers, backoff };

struct ItemField {
  std::string_view name;
  ItemFieldKind kind;
  std::string Item::*text = nullptr;
  std::uint64_t Item::*number = nullptr;
};
constexpr ItemField text_field(std::string_view name, std::string Item::*member) {
  return {name, ItemFieldKind::text, member, nullptr};
}
constexpr ItemField number_field(std::string_view name, std::uint64_t Item::*member) {
  return {name, ItemFieldKind::number, nullptr, member};
}

inline constexpr ItemField kPayloadItemField{"payload", ItemFieldKind::payload};
inline constexpr ItemField kHeadersItemField{"headers", ItemFieldKind::headers};
inline constexpr std::array kRequestFields{
    text_field("queue", &Item::queue),
    kPayloadItemField,
    number_field("delay_ms", &Item::delay_ms),
    number_field("priority", &Item::priority),
    number_field("max_attempts", &Item::max_attempts),
    number_field("visibility_timeout_ms", &Item::visibility_timeout_ms),
    ItemField{"backoff", ItemFieldKind::backoff},
    text_field("key", &Item::key),
    text_field("webhook", &Item::webhook),
    kHeadersItemField,
};
inline constexpr std::array kBackoffFields{
    number_field("initial_ms", &Item::backoff_initial_ms),
    number_field("max_ms", &Item::backoff_max_ms),
};
inline constexpr std::array kLeasedFields{
    text_field("id", &Item::id),
    text_field("lease", &Item::lease),
    number_field("attempt", &Item::attempt),
    text_field("queue", &Item::queue),
    text_field("key", &Item::key),
    kHeadersItemField,
    kPayloadItemField,
    number_field("priority", &Item::priority),
    text_field("due_at", &Item::due_at),
    text_field("lease_until", &Item::lease_until),
    number_field("lateness_ms", &Item::lateness_ms),
};
inline constexpr std::size_t kMostFields = 16;

/// The fields of an object. A name that is not in the table is refused in requests and skipped in
/// answers.
struct ObjectRules {
  std::span<const ItemField> fields;
  bool skips_unknown = false;

  std::optional<std::size_t> find(std::string_view name) const {
    const auto found = std::ranges::find(fields, name, &ItemField::name);
    if (found == fields.end()) return std::nullopt;
    return static_cast<std::size_t>(found - fields.begin());
  }
};
inline constexpr ObjectRules kRequestRules{kRequestFields};
inline constexpr ObjectRules kBackoffRules{kBackoffFields};
inline constexpr ObjectRules kLeasedRules{kLeasedFields, true};

/// A request; an array of requests; or an object whose member "tasks" is an array of leased tasks.
enum class Shape : std::uint8_t { request, batch, lease_answer };

/// A parser. One object reads one document at a time, and may keep its buffers.
class JsonContender {
 public:
  JsonContender() = default;
  virtual ~JsonContender() = default;
  JsonContender(const JsonContender&) = delete;
  JsonContender& operator=(const JsonContender&) = delete;

  /// Appends the items of the document. Returns false if the document is refused. The caller owns
  /// kPaddingBytes after `text`.
  virtual bool read(std::string_view text, Shape shape, std::vector<Item>& items) = 0;
};

struct NamedContender {
  std::string name;
  std::unique_ptr<JsonContender> reader;
};

// Each function appends the contenders of one library.
void add_detent(std::vector<NamedContender>& contenders);
void add_simdjson(std::vector<NamedContender>& contenders);
void add_rapidjson(std::vector<NamedContender>& contenders);
/// One scan by our reader, without items: a part of the work of "detent".
void add_scan(std::vector<NamedContender>& contenders);

}  // namespace detent::bench
