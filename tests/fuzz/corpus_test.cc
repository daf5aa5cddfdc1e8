// Replays the stored inputs of functions that need no server (corpus.h).
#include "tests/fuzz/corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {
namespace {

TEST(Corpus, CronExpressions) { replay("cron_expressions", cron_expressions); }

}  // namespace
}  // namespace detent::fuzz
