// Kept inputs that need no server, and how all of them are replayed (corpus.h).
#include "tests/fuzz/corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {
namespace {

TEST(Corpus, CronExpressions) { replay("cron_expressions", cron_expressions); }

}  // namespace
}  // namespace detent::fuzz
