// Tests the contents of the scripts. tests/package/completion_test.py runs them in real shells.
#include "cli/help/completion.h"

#include <gtest/gtest.h>

#include <string>

namespace detent::cli {
namespace {

CommandEntry small_program() {
  const OptionEntry state{
      .name = "--state", .value = "a|b", .what = "the task's state", .words = {"a", "b"}};
  const CommandEntry put{.name = "put", .what = "make one", .options = {state}};
  const CommandEntry part{.name = "next", .what = "when", .arguments = {{.name = "FILE"}}};
  return {.name = "detent",
          .commands = {put, {.name = "cron", .what = "of cron", .commands = {part}}}};
}

bool has(const std::string& script, const std::string& text) {
  return script.find(text) != std::string::npos;
}

TEST(Completion, BashKnowsCommandsOptionsWordsAndFiles) {
  const std::string script = render_completion(small_program(), Shell::bash);
  EXPECT_TRUE(has(script, "'') _detent_words 'put cron ' ;;")) << script;
  EXPECT_TRUE(has(script, "':put') command='put' ;;")) << script;
  EXPECT_TRUE(has(script, "'cron:next') command='cron next' ;;")) << script;
  EXPECT_TRUE(has(script, "'put --state') _detent_words 'a b'; return ;;")) << script;
  EXPECT_TRUE(has(script, "'cron next') _detent_paths -f ;;")) << script;
}

TEST(Completion, QueueNamesComeFromTheServer) {
  const CommandEntry purge{.name = "purge", .what = "empty it", .arguments = {{.name = "QUEUE"}}};
  const CommandEntry list{
      .name = "list", .what = "tasks", .options = {{.name = "--queue", .value = "QUEUE"}}};
  const CommandEntry program{.name = "detent", .commands = {purge, list}};
  const std::string bash = render_completion(program, Shell::bash);
  EXPECT_TRUE(has(bash, "'purge') _detent_queues ;;")) << bash;
  EXPECT_TRUE(has(bash, "'list --queue') _detent_queues; return ;;")) << bash;
  EXPECT_TRUE(has(render_completion(program, Shell::zsh), "'purge') _detent_queues ;;"));
  EXPECT_TRUE(has(render_completion(program, Shell::fish), "-l queue -x -a '(__detent_queues)'"));
}

TEST(Completion, ADescriptionWithAQuoteStaysOneWord) {
  EXPECT_TRUE(
      has(render_completion(small_program(), Shell::zsh), R"('--state:the task'\''s state')"));
  EXPECT_TRUE(has(render_completion(small_program(), Shell::fish), R"(-d 'the task\'s state')"));
}

TEST(Completion, FishCompletesByThePlaceOfTheCursor) {
  const std::string script = render_completion(small_program(), Shell::fish);
  EXPECT_TRUE(has(script, "case 'cron:next'\n        set command 'cron next'\n")) << script;
  EXPECT_TRUE(has(script, "-l state -x -a 'a b'")) << script;
}

}  // namespace
}  // namespace detent::cli
