// Writes the simple YAML of beanstalk replies: one list of strings, or one dictionary with string
// keys and scalar values.
//
// A string is written without quotes only if every YAML reader takes it for a string. A string that
// YAML 1.1 or 1.2 could read as a number, a boolean, a null, a date or a comment gets quotes.
// beanstalkd quotes only its version, so a client of beanstalkd reads the tube "123" as a number.
// Pure: no I/O.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace detent::beanstalk {

class YamlWriter {
 public:
  /// Starts the document with the line "---".
  YamlWriter() = default;

  /// Adds an entry to the list.
  void item(std::string_view value);
  /// Adds an entry to the dictionary. `key` is written without quotes, so it must need none.
  void field(std::string_view key, std::string_view value);
  template <std::unsigned_integral Number>
  void field(std::string_view key, Number value) {
    plain_field(key, std::to_string(value));
  }
  /// Adds an entry with `value` as it is: a number or a boolean that the caller has formatted.
  void plain_field(std::string_view key, std::string_view value);

  const std::string& text() const noexcept { return text_; }

 private:
  void scalar(std::string_view value);

  std::string text_ = "---\n";
};

}  // namespace detent::beanstalk
