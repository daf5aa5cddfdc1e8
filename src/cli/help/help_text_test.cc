#include "cli/help/help_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace detent::cli {
namespace {

TEST(HelpText, ACommandHasItsArgumentsOptionsNotesAndExamples) {
  const OptionEntry server{.name = "--server",
                           .value = "URL",
                           .what = "Address of the server",
                           .otherwise = "http://127.0.0.1:7070",
                           .variable = "DETENT_URL",
                           .group = kServerOptions};
  const OptionEntry max{.name = "--max",
                        .value = "N",
                        .what = "Number of tasks",
                        .otherwise = "1",
                        .range = "1 to 1000"};
  const OptionEntry by{
      .name = "--by", .value = "DURATION", .what = "How much longer", .is_required = true};
  const CommandEntry lease{.name = "lease",
                           .what = "Lease due tasks",
                           .arguments = {{.name = "QUEUE", .what = "Name", .is_required = true},
                                         {.name = "KEY", .what = "Keys", .is_repeated = true}},
                           .options = {server, max, by},
                           .notes = {"A note."},
                           .examples = {"detent lease mail"}};
  EXPECT_EQ(render_help(lease, "detent lease"),
            R"(Lease due tasks.

Usage: detent lease QUEUE [KEY...] [OPTIONS]

Arguments:
  QUEUE          Name
  KEY            Keys

Options:
  --max N        Number of tasks (1 to 1000, default 1)
  --by DURATION  How much longer (required)
  --help         Print this help

Options of all commands to a server:
  --server URL   Address of the server (default http://127.0.0.1:7070, or
                 DETENT_URL)

A note.

Example:
  detent lease mail
)");
}

TEST(HelpText, CommandsAreInTheirGroupsInTheOrderOfTheTable) {
  const CommandEntry program{.name = "detent",
                             .what = "Does it.",
                             .commands = {{.name = "put", .what = "Schedule", .group = "Tasks"},
                                          {.name = "serve", .what = "Run", .group = "Server"},
                                          {.name = "get", .what = "Show", .group = "Tasks"}}};
  EXPECT_EQ(render_help(program, "detent"),
            R"(Does it.

Usage: detent COMMAND [OPTIONS]

Tasks:
  put     Schedule
  get     Show

Server:
  serve   Run

Options:
  --help  Print this help
)");
}

TEST(HelpText, LongTextIsWrappedAndALongNameHasItsOwnLine) {
  std::string what;
  for (int i = 0; i < 60; ++i) what += (i == 0 ? "" : " ") + std::to_string(i);
  const OptionEntry state{.name = "--state", .value = "scheduled|ready|leased|dead", .what = what};
  const CommandEntry list{.name = "list", .what = what, .options = {state}};
  const std::string help = render_help(list, "detent list");
  EXPECT_NE(help.find("\n  --state scheduled|ready|leased|dead\n          0 1 2 "),
            std::string::npos)
      << help;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

}  // namespace
}  // namespace detent::cli
