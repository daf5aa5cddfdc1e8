// The little YAML that beanstalk replies are made of: one list of strings, or one dictionary of
// strings to scalars.
//
// A string stands plain where every reader takes it for that string; one that YAML 1.1 or 1.2 would
// read as a number, a boolean, a null, a date or a comment is quoted. beanstalkd quotes nothing but
// its version, so its tube "123" arrives as a number. Pure.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace detent::beanstalk {

class YamlWriter {
 public:
  /// The begin of the document is written.
  YamlWriter() = default;

  /// An entry of the list.
  void item(std::string_view value);
  /// An entry of the dictionary; keys are ours and need no quotes.
  void field(std::string_view key, std::string_view value);
  template <std::unsigned_integral Number>
  void field(std::string_view key, Number value) {
    plain_field(key, std::to_string(value));
  }
  /// `value` as it is: a number or a boolean that the caller has written.
  void plain_field(std::string_view key, std::string_view value);

  const std::string& text() const noexcept { return text_; }

 private:
  void scalar(std::string_view value);

  std::string text_ = "---\n";
};

}  // namespace detent::beanstalk
