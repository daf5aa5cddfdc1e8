// Replays the stored inputs for the formats and protocols of the server: seeds, and inputs that the
// fuzzer found.
#include <gtest/gtest.h>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {
namespace {

TEST(Corpus, BeanstalkCommands) { replay("beanstalk_commands", beanstalk_commands); }
TEST(Corpus, ConfigFiles) { replay("config_files", config_files); }
TEST(Corpus, HttpMessages) { replay("http_messages", http_messages); }
TEST(Corpus, HttpRoutes) { replay("http_routes", http_routes); }
TEST(Corpus, JsonBodies) { replay("json_bodies", json_bodies); }
TEST(Corpus, StoredTasks) { replay("stored_tasks", stored_tasks); }
TEST(Corpus, StoredSchedules) { replay("stored_schedules", stored_schedules); }

}  // namespace
}  // namespace detent::fuzz
