#include "protocol/json/lateness_json.h"

#include <limits>

namespace detent::json {
namespace {

constexpr ByCause<LatenessCause> kCauses{LatenessCause::before_start, LatenessCause::engine,
                                         LatenessCause::limit, LatenessCause::worker};

}  // namespace

void write_by_cause(JsonWriter& writer, const ByCause<std::uint64_t>& counts) {
  writer.begin_object();
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    writer.name(to_string(kCauses[i])).number(counts[i]);
  }
  writer.end_object();
}

void write_by_cause(JsonWriter& writer, const LatenessParts& parts) {
  ByCause<std::uint64_t> counts{};
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    counts[i] = static_cast<std::uint64_t>(parts[i].count());
  }
  write_by_cause(writer, counts);
}

void write_late(JsonWriter& writer, const LatenessParts& late) {
  if (late == LatenessParts{}) return;
  writer.name("late_ms");
  write_by_cause(writer, late);
}

Result<ByCause<std::uint64_t>> read_by_cause(std::string_view json, UnknownFields unknown) {
  ByCause<JsonField> fields;
  ByCause<JsonField*> pointers{};
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    fields[i].name = to_string(kCauses[i]);
    pointers[i] = &fields[i];
  }
  TRY(take_fields(json, pointers, unknown));
  ByCause<std::uint64_t> counts{};
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    ASSIGN_OR_RETURN(counts[i],
                     read_integer(fields[i], {.max = std::numeric_limits<std::int64_t>::max()}));
  }
  return counts;
}

Result<LatenessParts> read_late(const JsonField& field, UnknownFields unknown) {
  LatenessParts late{};
  if (!field.given()) return late;
  ASSIGN_OR_RETURN(const auto counts, read_by_cause(field.text, unknown));
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    late[i] = std::chrono::milliseconds{static_cast<std::int64_t>(counts[i])};
  }
  return late;
}

}  // namespace detent::json
