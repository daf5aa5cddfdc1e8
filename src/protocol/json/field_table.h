// Field tables. A table describes a JSON object once, and the same table reads and writes it.
//
// A field has a name, a member of a struct, a codec for the value, and a rule for missing values:
//
//     using BackfillFields = Table<Required<"from", &BackfillRange::from>,
//                                  Required<"to", &BackfillRange::to>,
//                                  Sparse<"limit", &BackfillRange::limit, Range<1, kMaxBackfill>>>;
//
// Fields are read and written in the order of the table. The compiler expands a table into direct
// comparisons and calls, so reading a field needs no allocation and no function pointer.
//
// A field is any class with `kSlots`, `kNames`, `read()` and `write()`, as in Field. A Table has
// them, too: a table inside a table adds its fields there.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wall_time.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"

namespace detent::json {

/// Where an object occurs. Requests may have durations as text. Answers have every value that is in
/// force, and may be from a newer server, so most limits are not checked.
enum class Form : std::uint8_t { request, answer, dump };
/// A form as an argument, for the compiler.
template <Form kForm>
using FormConstant = std::integral_constant<Form, kForm>;
inline constexpr FormConstant<Form::request> kRequest;
inline constexpr FormConstant<Form::answer> kAnswer;
inline constexpr FormConstant<Form::dump> kDump;

enum class Presence : std::uint8_t {
  required,  // reading fails without it; always written
  optional,  // may be missing, which keeps the default; always written
  nullable,  // may be missing or null; written as null if it has no value
  sparse,    // may be missing; written only if it is set and not the default
};

/// The presence of a field in each form.
struct Presences {
  Presence request;
  Presence answer;
  Presence dump;

  constexpr Presence in(Form form) const noexcept {
    return form == Form::request ? request : form == Form::answer ? answer : dump;
  }
};
inline constexpr Presences kRequired{Presence::required, Presence::required, Presence::required};
inline constexpr Presences kOptional{Presence::optional, Presence::optional, Presence::optional};
inline constexpr Presences kNullable{Presence::nullable, Presence::nullable, Presence::nullable};
inline constexpr Presences kSparse{Presence::sparse, Presence::sparse, Presence::sparse};
/// Sparse, but an answer has the value in force.
inline constexpr Presences kRule{Presence::sparse, Presence::required, Presence::sparse};
/// Requests may leave it out.
inline constexpr Presences kStored{Presence::optional, Presence::required, Presence::required};

/// A text as a template argument.
template <std::size_t kSize>
struct FixedText {
  std::array<char, kSize> text{};

  // NOLINTNEXTLINE(google-explicit-constructor): a literal is the argument
  constexpr FixedText(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text.begin()); }
  constexpr std::string_view view() const noexcept { return {text.data(), kSize - 1}; }
};

/// Follows pointers to members: kAt<&A::b, &B::c>(a) is a.b.c.
template <auto kFirst, auto... kRest>
struct Path {
  template <class T>
  requires std::is_invocable_v<decltype(kFirst), T&>
  constexpr auto& operator()(T& object) const {
    auto& member = std::invoke(kFirst, object);
    if constexpr (sizeof...(kRest) == 0) {
      return member;
    } else {
      return Path<kRest...>()(member);
    }
  }
};
template <auto... kPath>
inline constexpr Path<kPath...> kAt{};

/// For a table of two structs: the first member that the object has.
template <auto kOne, auto kOther>
struct EitherPath {
  template <class T>
  constexpr auto& operator()(T& object) const {
    if constexpr (std::is_invocable_v<decltype(kOne), T&>) {
      return std::invoke(kOne, object);
    } else {
      return std::invoke(kOther, object);
    }
  }
};
template <auto kOne, auto kOther>
inline constexpr EitherPath<kOne, kOther> kEither{};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// How a value of type T is read and written, if its field has no other codec. read() gets a
/// missing field as well, and then returns the error.
template <class T>
struct Codec;

/// An integer, or milliseconds, within limits.
template <std::uint64_t kMin, std::uint64_t kMax>
struct Range {
  template <class T>
  static Result<void> read(auto /*form*/, const JsonField& field, T& value) {
    ASSIGN_OR_RETURN(const std::uint64_t number, read_integer(field, {.min = kMin, .max = kMax}));
    if constexpr (std::integral<T>) {
      value = static_cast<T>(number);
    } else {
      value = T{number};
    }
    return ok();
  }
  template <class T>
  static void write(auto /*form*/, JsonWriter& writer, const T& value) {
    if constexpr (std::integral<T>) {
      writer.number(value);
    } else {
      writer.number(value.count());
    }
  }
};
inline constexpr std::uint64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
using Count = Range<0, kMaxInt64>;

template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) struct Codec<T> : Range<0, std::numeric_limits<T>::max()> {
};
template <>
struct Codec<std::chrono::milliseconds> : Count {};

/// A limit that holds for requests and dumps. A newer server may have a higher limit.
template <std::uint64_t kMin, std::uint64_t kMax>
struct Limit : Range<kMin, kMax> {
  template <class T>
  static Result<void> read(auto form, const JsonField& field, T& value) {
    using Reader = std::conditional_t<form == Form::answer, Codec<T>, Range<kMin, kMax>>;
    return Reader::read(form, field, value);
  }
};

/// A codec of two functions.
template <auto kRead, auto kWrite>
struct By {
  static Result<void> read(auto /*form*/, const JsonField& field, auto& value) {
    ASSIGN_OR_RETURN(value, kRead(field));
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, const auto& value) { kWrite(writer, value); }
};
inline void write_string(JsonWriter& writer, std::string_view text) { writer.string(text); }
inline void write_bool(JsonWriter& writer, bool value) { writer.raw(value ? "true" : "false"); }
inline void write_time(JsonWriter& writer, WallTime time) { writer.string(format_rfc3339(time)); }
template <>
struct Codec<std::string> : By<read_string, write_string> {};
template <>
struct Codec<std::string_view> : By<read_string, write_string> {};
template <>
struct Codec<bool> : By<read_bool, write_bool> {};
template <>
struct Codec<WallTime> : By<read_time, write_time> {};
/// A flag of an answer. Everything but true means false.
struct IsTrue : Codec<bool> {
  static Result<void> read(auto /*form*/, const JsonField& field, bool& value) {
    value = field.given() && field.value->text == "true";
    return ok();
  }
};
/// The start of the next page of a list; "" on the last page.
struct Cursor : Codec<std::string> {
  static Result<void> read(auto /*form*/, const JsonField& field, std::string& cursor) {
    ASSIGN_OR_RETURN(cursor, read_cursor(field));
    return ok();
  }
  static void write(auto /*form*/, JsonWriter& writer, std::string_view cursor) {
    writer.string_or_null(cursor);
  }
};

/// The values of an enum, and the text of an error about another word. An empty text: the error
/// lists the words.
template <class Enum>
struct Words;
template <auto... kAll>
struct WordList {
  static constexpr std::array kValues{kAll...};
  static constexpr std::string_view kAllowed{};
};

/// An enum as a word.
template <class Enum>
requires std::is_enum_v<Enum>
struct Codec<Enum> {
  static Result<void> read(auto /*form*/, const JsonField& field, Enum& value) {
    ASSIGN_OR_RETURN(const std::string text, read_string(field));
    std::string allowed;
    for (const Enum one : Words<Enum>::kValues) {
      if (to_string(one) == text) {
        value = one;
        return ok();
      }
      allowed += (allowed.empty() ? "\"" : ", \"") + std::string(to_string(one)) + "\"";
    }
    constexpr std::string_view kAllowed = Words<Enum>::kAllowed;
    return wrong_field(field, kAllowed.empty() ? "one of " + allowed : std::string(kAllowed));
  }
  static void write(auto /*form*/, JsonWriter& writer, Enum value) {
    writer.string(to_string(value));
  }
};

template <class C, class T>
using CodecOr = std::conditional_t<std::is_void_v<C>, Codec<T>, C>;

/// Reads and writes `value`, which may be an optional, with the codec C or the one of its type.
template <class C, class T>
Result<void> read_value(auto form, const JsonField& field, T& value) {
  if constexpr (kIsOptional<T>) {
    return read_value<C>(form, field, value.emplace());
  } else {
    return CodecOr<C, T>::read(form, field, value);
  }
}
template <class C, class T>
void write_value(auto form, JsonWriter& writer, const T& value) {
  if constexpr (!kIsOptional<T>) {
    CodecOr<C, T>::write(form, writer, value);
  } else if (value) {
    write_value<C>(form, writer, *value);
  } else {
    writer.null();
  }
}

template <class T>
inline const T kDefaultOf{};

/// True if the member of the object has no value or its default.
template <auto kMember, class T>
bool is_unset(const T& object) {
  return std::invoke(kMember, object) == std::invoke(kMember, kDefaultOf<T>);
}

template <FixedText kName, auto kMember, Presences kPresences, class C = void>
struct Field {
  using ValueCodec = C;
  static constexpr std::size_t kSlots = 1;
  /// The name of each slot. A slot with an empty name does not exist in this form.
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{kName.view()};

  /// Reads the member from its slots.
  static Result<void> read(auto form, const JsonField* slot, auto& object) {
    constexpr Presence kPresence = kPresences.in(form);
    if constexpr (kPresence != Presence::required) {
      if (!slot->given()) return ok();
    }
    if constexpr (kPresence == Presence::nullable) {
      if (slot->is(JsonKind::null)) return ok();
    }
    return read_value<C>(form, *slot, std::invoke(kMember, object));
  }
  /// Writes the name and the value, or nothing.
  static void write(auto form, JsonWriter& writer, const auto& object) {
    if constexpr (kPresences.in(form) == Presence::sparse) {
      if (is_unset<kMember>(object)) return;
    }
    write_value<C>(form, writer.name(kName.view()), std::invoke(kMember, object));
  }
};

template <FixedText kName, auto kMember, class C = void>
using Required = Field<kName, kMember, kRequired, C>;
template <FixedText kName, auto kMember, class C = void>
using Optional = Field<kName, kMember, kOptional, C>;
template <FixedText kName, auto kMember, class C = void>
using Nullable = Field<kName, kMember, kNullable, C>;
template <FixedText kName, auto kMember, class C = void>
using Sparse = Field<kName, kMember, kSparse, C>;

template <std::size_t kSize, std::size_t kMore>
constexpr auto operator+(const FixedText<kSize>& text, const FixedText<kMore>& end) {
  char both[kSize + kMore - 1] = {};
  std::copy_n(end.text.begin(), kMore, std::copy_n(text.text.begin(), kSize - 1, both));
  return FixedText<kSize + kMore - 1>(both);
}

/// A duration of at most `kLongest`. Requests may have it as text in the member `kName`. It is
/// written as an integer in the member with "_ms" at its end.
template <FixedText kName, auto kMember, const auto& kLongest, Presences kPresences = kSparse>
struct Duration {
  static constexpr auto kMsName = kName + FixedText("_ms");
  static constexpr std::size_t kSlots = 2;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{
      kForm == Form::request ? kName.view() : std::string_view(), kMsName.view()};
  static constexpr std::chrono::milliseconds kMost{kLongest};
  using ValueCodec = void;
  using Milliseconds = Field<kMsName, kMember, kPresences, Limit<0, std::uint64_t{kMost.count()}>>;

  static Result<void> read(auto form, const JsonField* slots, auto& object) {
    if constexpr (form != Form::request) return Milliseconds::read(form, slots + 1, object);
    if (slots[0].given() || slots[1].given()) {
      ASSIGN_OR_RETURN(const auto duration, read_duration({slots[0], slots[1]}, kMost));
      std::invoke(kMember, object) = *duration;
    } else if (kPresences.in(form) == Presence::required) {
      return missing_field(slots[0]);
    }
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const auto& object) {
    Milliseconds::write(form, writer, object);
  }
};

template <class... Fields>
struct Table {
  static constexpr std::size_t kSlots = (std::size_t{0} + ... + Fields::kSlots);
  using Slots = std::array<JsonField, kSlots>;

  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames = [] {
    std::array<std::string_view, kSlots> names{};
    std::size_t next = 0;
    const auto add = [&](const auto& some) {
      for (const std::string_view name : some) names.at(next++) = name;
    };
    (add(Fields::template kNames<kForm>), ...);
    return names;
  }();

  static Result<void> read(auto form, const JsonField* slots, auto& object) {
    Result<void> result;
    const auto read_one = [&]<class One>(std::type_identity<One>) {
      Result<void> one = One::read(form, slots, object);
      slots += One::kSlots;
      if (one) return true;
      result = std::move(one);
      return false;
    };
    (void)(read_one(std::type_identity<Fields>()) && ...);
    return result;
  }
  static void write([[maybe_unused]] auto form, JsonWriter& writer, const auto& object) {
    (Fields::write(form, writer, object), ...);
  }

  /// Calls `use` with a std::type_identity of each field.
  static void each(auto use) { (use(std::type_identity<Fields>()), ...); }

  /// Finds the members of the object and sets their slots. Errors: as for take_fields().
  static Result<void> take([[maybe_unused]] auto form, const JsonValue& object, Slots& slots,
                           UnknownFields unknown) {
    return take_members(object, unknown, [&slots](std::string_view name) {
      return find<decltype(form)::value>(slots, name, std::make_index_sequence<kSlots>());
    });
  }
  static constexpr Slots empty_slots([[maybe_unused]] auto form) {
    Slots slots{};
    for (std::size_t i = 0; i < kSlots; ++i) slots[i].name = kNames<form>[i];
    return slots;
  }

 private:
  template <Form kForm, std::size_t... kIndex>
  static JsonField* find(Slots& slots, std::string_view name, std::index_sequence<kIndex...>) {
    JsonField* found = nullptr;
    const auto is = [&]<std::size_t kOne>(std::integral_constant<std::size_t, kOne>) {
      constexpr std::string_view kName = kNames<kForm>[kOne];
      if (kName.empty() || name.size() != kName.size()) return false;
      if (name.front() != kName.front() || name != kName) return false;
      found = &slots[kOne];
      return true;
    };
    (void)(is(std::integral_constant<std::size_t, kIndex>()) || ...);
    return found;
  }
};

/// The fields of a table, in a member of the object. An optional is written only if it is set.
template <auto kMember, class Fields>
struct Part : Fields {
  static Result<void> read(auto form, const JsonField* slots, auto& object) {
    return Fields::read(form, slots, std::invoke(kMember, object));
  }
  static void write(auto form, JsonWriter& writer, const auto& object) {
    const auto& part = std::invoke(kMember, object);
    if constexpr (!kIsOptional<std::remove_cvref_t<decltype(part)>>) {
      Fields::write(form, writer, part);
    } else if (part) {
      Fields::write(form, writer, *part);
    }
  }
};

/// A field of which only one direction happens at this place of the table.
template <class One>
struct OnlyRead : One {
  static void write(auto /*form*/, JsonWriter& /*writer*/, const auto& /*object*/) {}
};
template <class One>
struct OnlyWritten : One {
  static constexpr std::size_t kSlots = 0;
  template <Form kForm>
  static constexpr std::array<std::string_view, kSlots> kNames{};
  static Result<void> read(auto /*form*/, const JsonField* /*slots*/, auto& /*object*/) {
    return ok();
  }
};

/// A field that has this form in every form of its table.
template <Form kFixed, class One>
struct As : One {
  template <Form kForm>
  static constexpr std::array<std::string_view, One::kSlots> kNames = One::template kNames<kFixed>;
  static Result<void> read(auto /*form*/, const JsonField* slots, auto& object) {
    return One::read(FormConstant<kFixed>(), slots, object);
  }
  static void write(auto /*form*/, JsonWriter& writer, const auto& object) {
    One::write(FormConstant<kFixed>(), writer, object);
  }
};

constexpr UnknownFields unknown_in(Form form) noexcept {
  return form == Form::answer ? UnknownFields::skip : UnknownFields::refuse;
}

/// Reads a JSON object into `object`.
template <class Fields>
Result<void> read_into(auto form, auto& object, const JsonValue& json, UnknownFields unknown) {
  typename Fields::Slots slots = Fields::empty_slots(form);
  TRY(Fields::take(form, json, slots, unknown));
  return Fields::read(form, slots.data(), object);
}

template <class Fields>
void write_object(auto form, JsonWriter& writer, const auto& object) {
  writer.begin_object();
  Fields::write(form, writer, object);
  writer.end_object();
}

/// The fields of a whole body that is a T.
template <Form kForm, class T, class... Fields>
struct Body : Table<Fields...> {
  static constexpr FormConstant<kForm> kOwnForm{};
  /// `size` is the expected size of the text.
  static std::string render(const auto& value, std::size_t size = 0) {
    std::string body;
    body.reserve(size);
    JsonWriter writer(body);
    write_object<Body>(kOwnForm, writer, value);
    return body;
  }
  static Result<T> parse(std::string_view json) {
    JsonDocument document;
    constexpr std::size_t kMost = kForm == Form::answer ? kAnyNumberOfJsonValues : kMaxJsonValues;
    const Result<const JsonValue*> body = document.read(json, kMost);
    Result<T> value = body ? parse(**body) : Result<T>(body.error());
    if constexpr (kForm == Form::answer) return as_answer(std::move(value));
    return value;
  }
  static Result<T> parse(const JsonValue& json) {
    Result<T> value{T{}};
    Result<void> read = read_into<Body>(kOwnForm, *value, json, unknown_in(kForm));
    if (!read) value = std::move(read).error();
    return value;
  }
};
template <class T, class... Fields>
using RequestBody = Body<Form::request, T, Fields...>;
template <class T, class... Fields>
using AnswerBody = Body<Form::answer, T, Fields...>;

/// A codec for an object with the fields of a table. `kShape` describes it in the error of a
/// request that has another kind of value.
template <class Fields, FixedText kShape = "">
struct Object {
  static Result<void> read(auto form, const JsonField& field, auto& value) {
    if constexpr (form == Form::request && !kShape.view().empty()) {
      if (!field.is(JsonKind::object)) return wrong_field(field, kShape.view());
    }
    if (!field.given()) return missing_field(field);
    Result<void> read = read_into<Fields>(form, value, *field.value, unknown_in(form));
    if (!read) return inside_field(field, std::move(read).error());
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const auto& value) {
    write_object<Fields>(form, writer, value);
  }
};

/// A codec for an array of at most `kMost` elements with the codec C.
template <class C = void, std::size_t kMost = std::numeric_limits<std::size_t>::max()>
struct Array {
  template <class T>
  static Result<void> read(auto form, const JsonField& field, std::vector<T>& values) {
    if (!field.given()) return missing_field(field);
    auto count = count_elements(*field.value, kMost);
    if (!count) return inside_field(field, std::move(count).error());
    values.reserve(*count);
    for (const JsonValue& element : *field.value) {
      TRY((read_value<C>(form, {field.name, &element}, values.emplace_back())));
    }
    return ok();
  }
  static void write(auto form, JsonWriter& writer, const auto& values) {
    writer.begin_array();
    for (const auto& value : values) write_value<C>(form, writer, value);
    writer.end_array();
  }
};
template <class Fields, std::size_t kMost = std::numeric_limits<std::size_t>::max()>
using Objects = Array<Object<Fields>, kMost>;

}  // namespace detent::json
