// Checks which strings get quotes. Some readers of YAML 1.1 or 1.2 take the quoted names for
// another type than a string; every reader takes the plain names for strings.
#include "protocol/beanstalk/yaml_writer.h"

#include <gtest/gtest.h>

namespace detent::beanstalk {
namespace {

std::string scalar(std::string_view value) {
  YamlWriter yaml;
  yaml.item(value);
  EXPECT_TRUE(yaml.text().starts_with("---\n- ") && yaml.text().ends_with("\n"));
  return yaml.text().substr(6, yaml.text().size() - 7);
}

TEST(YamlWriter, LeavesUnambiguousStringsPlain) {
  for (const char* const name : {"default", "a-b_c/d+e;f.g$h(i)", "_1", "a1", "e5", "truest", "x",
                                 "Infinity", "nan", "inf", "A", "o7"}) {
    EXPECT_EQ(scalar(name), name);
  }
}

TEST(YamlWriter, QuotesAmbiguousStrings) {
  for (const char* const name :
       {"",     "true", "True", "FALSE", "yes",  "No",   "on",        "OFF",        "null",
        "Null", "y",    "N",    "~",     "123",  "0x1F", "0o7",       "1_000",      "1e5",
        "-1",   "+1",   ".5",   ".inf",  ".NaN", "1.5",  "190:20:30", "2001-01-01", "-x",
        "a:b",  "a: b", "a #b", "#a",    "- a",  "?",    "!a",        "&a",         "*a",
        "%a",   "@a",   "a b",  " a",    "[a]",  "{a}",  "a,b",       "'a'",        "|",
        ">",    "$a",   "(a)",  "/a",    "<<",   "=",    "4d"}) {
    EXPECT_EQ(scalar(name), "\"" + std::string(name) + "\"");
  }
  EXPECT_EQ(scalar("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(scalar("a\nb\x7F"), "\"a\\x0ab\\x7f\"");
  EXPECT_EQ(scalar("\xC3\xA9"), "\"\xC3\xA9\"");
}

TEST(YamlWriter, WritesADictionary) {
  YamlWriter yaml;
  yaml.field("name", "true");
  yaml.field("count", std::uint64_t{18'446'744'073'709'551'615u});
  yaml.plain_field("draining", "false");
  EXPECT_EQ(yaml.text(), "---\nname: \"true\"\ncount: 18446744073709551615\ndraining: false\n");
}

}  // namespace
}  // namespace detent::beanstalk
