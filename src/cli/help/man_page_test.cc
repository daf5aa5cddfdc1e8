// Tests the manual page of a small table of commands. tests/package/man_page_test.py compares the
// real page with the program.
#include "cli/help/man_page.h"

#include <gtest/gtest.h>

#include <string>

namespace detent::cli {
namespace {

CommandEntry small_program() {
  const OptionEntry server{
      .name = "--server", .value = "URL", .what = "the server's address", .variable = "X_URL"};
  const OptionEntry limit{.name = "--limit",
                          .value = "N",
                          .what = "most to show",
                          .otherwise = "100",
                          .range = "1 to 500"};
  const CommandEntry list{.name = "list",
                          .what = "show tasks",
                          .arguments = {{.name = "QUEUE", .what = "its queue", .is_required = true},
                                        {.name = "KEY", .what = "keys", .is_repeated = true}},
                          .options = {server, limit},
                          .notes = {"It is quick."},
                          .examples = {"detent list 'a\\b' --limit 5"}};
  const CommandEntry next{.name = "next", .what = "when it runs", .options = {limit}};
  const CommandEntry cron{.name = "cron", .what = "of cron", .commands = {next}};
  return {.name = "detent", .options = {server}, .commands = {list, cron}};
}

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

TEST(ManPage, ListsTheArgumentsAndNotesOfEachCommand) {
  const std::string page = render_man_page(small_program());
  EXPECT_TRUE(has(page, ".BI \"list\" \" QUEUE [KEY...]\"\nShow tasks.\nIt is quick.\n")) << page;
  EXPECT_TRUE(has(page, ".BI \"cron next\"\nWhen it runs.\n")) << page;
  EXPECT_FALSE(has(page, ".BI \"cron\"")) << "a command that can't be typed alone";
}

TEST(ManPage, ListsEachOptionOnceWithRangeDefaultAndVariable) {
  const std::string page = render_man_page(small_program());
  EXPECT_TRUE(has(page, ".SS Commands to a server\n.TP\n.BI \"\\-\\-server \" \"URL\"\n")) << page;
  EXPECT_TRUE(has(page,
                  ".SS list\n.TP\n.BI \"\\-\\-limit \" \"N\"\nMost to show.\n"
                  "1 to 500.\nDefault 100.\n"))
      << page;
  EXPECT_TRUE(has(page, ".SS cron next\n.TP\n.BI \"\\-\\-limit \"")) << page;
  EXPECT_TRUE(has(page, ".B X_URL\n\\-\\-server, list \\-\\-server\n")) << page;
}

TEST(ManPage, EscapesTextThatRoffWouldInterpret) {
  const std::string page = render_man_page(small_program());
  EXPECT_TRUE(has(page, "detent list \\(aqa\\eb\\(aq \\-\\-limit 5\n")) << page;
  const CommandEntry dotted{.name = "detent", .commands = {{.name = "a", .what = ".so /etc"}}};
  EXPECT_TRUE(has(render_man_page(dotted), "\n\\&.so /etc.\n"));
}

}  // namespace
}  // namespace detent::cli
