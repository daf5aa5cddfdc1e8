// Runs a server under load for a chosen time. Its memory, descriptors and disk space must stay
// bounded, even after many tasks. A control checks the test itself: it must find growing figures.
//
// DETENT_ENDURANCE_SECONDS sets the time. For a release, make one run of 28800 s. In a run of 1800
// s, the allowed noise of 24 MB hides a leak of 130 MB per hour. The test prints the figures.
#include <gtest/gtest.h>
#include <malloc.h>  // tidy-ok(third-party): glibc tells whether a sanitizer is in its place

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/clock.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// The resources of a server after a time.
struct Sample {
  double hours = 0;
  double memory_mb = 0;
  double disk_mb = 0;
  double descriptors = 0;
};

/// More growth than this per hour, after subtracting noise, is a leak.
constexpr double kMostMbAnHour = 1;
/// The memory of the two halves of a run can differ by this much, because caches fill and malloc
/// keeps memory that was used once.
constexpr double kNoiseMb = 24;
/// The log has at most 64 MB. During a compaction, the new table and the old ones are on disk
/// together.
constexpr double kMostDiskMb = 192;
constexpr double kMostMoreDescriptors = 40;  // the store opens and closes tables

double mean(std::span<const Sample> samples, double Sample::*figure) {
  double sum = 0;
  for (const Sample& sample : samples) sum += sample.*figure;
  return sum / static_cast<double>(samples.size());
}

/// Returns the problems that the samples show. Ignores the first quarter, because the server fills
/// its caches. Compares the two halves of the rest.
std::vector<std::string> findings(std::span<const Sample> samples) {
  samples = samples.subspan(samples.size() / 4);
  const std::span<const Sample> early = samples.first(samples.size() / 2);
  const std::span<const Sample> late = samples.subspan(samples.size() / 2);
  const double hours = mean(late, &Sample::hours) - mean(early, &Sample::hours);
  std::vector<std::string> found;
  const double grown = mean(late, &Sample::memory_mb) - mean(early, &Sample::memory_mb);
  if (grown > kMostMbAnHour * hours + kNoiseMb) found.emplace_back("memory grows");
  if (mean(late, &Sample::descriptors) > mean(early, &Sample::descriptors) + kMostMoreDescriptors) {
    found.emplace_back("descriptors grow");
  }
  if (std::ranges::any_of(samples, [](const Sample& s) { return s.disk_mb > kMostDiskMb; })) {
    found.emplace_back("the disk fills");
  }
  return found;
}

std::vector<Sample> steady(std::size_t count) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back({.hours = 0.01 * static_cast<double>(i),
                       .memory_mb = 50 + static_cast<double>(i % 7),
                       .disk_mb = 60 + static_cast<double>(i % 30),
                       .descriptors = 40 + static_cast<double>(i % 5)});
  }
  return samples;
}

TEST(EnduranceFindings, AreNoneOfAServerThatIsSteady) {
  EXPECT_TRUE(findings(steady(200)).empty());
}

TEST(EnduranceFindings, AreALeakOfMemory) {
  std::vector<Sample> samples = steady(200);
  for (Sample& sample : samples) sample.memory_mb += 40 * sample.hours;
  EXPECT_EQ(findings(samples), std::vector<std::string>{"memory grows"});
}

TEST(EnduranceFindings, AreALeakOfDescriptors) {
  std::vector<Sample> samples = steady(200);
  for (Sample& sample : samples) sample.descriptors += 100 * sample.hours;
  EXPECT_EQ(findings(samples), std::vector<std::string>{"descriptors grow"});
}

TEST(EnduranceFindings, AreALogThatIsNeverCut) {
  std::vector<Sample> samples = steady(200);
  samples.back().disk_mb = 500;
  EXPECT_EQ(findings(samples), std::vector<std::string>{"the disk fills"});
}

std::chrono::seconds time_wanted() {
  const char* const text = std::getenv("DETENT_ENDURANCE_SECONDS");
  return std::chrono::seconds{text != nullptr ? std::atoi(text) : 4};
}

double folder_mb(const std::string& path) {
  std::uintmax_t bytes = 0;
  std::error_code gone;  // files can disappear during the loop
  for (const auto& file : std::filesystem::recursive_directory_iterator(path, gone)) {
    const std::uintmax_t size = file.is_regular_file(gone) ? file.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return static_cast<double>(bytes) / (1 << 20);
}

/// Acts as producers and workers of all kinds in turn. Connects with a new client in each round.
class Load {
 public:
  Load(const ChildServer& server, std::uint64_t seed) : server_(server), rng_(seed) {}

  void round() {
    Client client = test::client_of(server_.url());
    for (int i = 0; i < 20; ++i) {
      std::vector<client::NewTask> batch;
      for (int n = 0; n < 20; ++n) batch.push_back(task());
      EXPECT_TRUE(client.schedule_many(batch));
      work(client);
    }
  }
  std::uint64_t tasks() const noexcept { return tasks_; }

 private:
  client::NewTask task() {
    ++tasks_;
    client::NewTask made{.queue = "q" + std::to_string(rng_.below(10)),
                         .due = std::chrono::milliseconds{rng_.below(2'000)}};
    made.payload = {client::Payload::Kind::bytes, std::string(rng_.below(1'000), 'x')};
    made.max_attempts = 3;
    if (rng_.below(4) == 0) made.key = "k" + std::to_string(rng_.below(100'000));
    if (made.key.empty()) return made;
    made.due = 1s;  // all requests with a key must be equal
    made.payload = {.data = "1"};
    made.queue = "keyed";
    return made;
  }

  void work(Client& client) {
    const std::string queue = rng_.below(5) == 0 ? "keyed" : "q" + std::to_string(rng_.below(10));
    const auto leased = client.lease(queue, {.max = 100});
    ASSERT_TRUE(leased) << leased.error().message;
    std::vector<std::string> done;
    std::vector<std::string> failed;
    std::vector<std::string> released;
    for (const auto& task : *leased) {
      switch (rng_.below(20)) {
        case 0:
          failed.push_back(task.lease);
          break;
        case 1:
          released.push_back(task.lease);
          break;
        default:
          done.push_back(task.lease);
      }
    }
    if (!done.empty()) {
      EXPECT_TRUE(client.complete(done));
    }
    if (!failed.empty()) {
      EXPECT_TRUE(client.fail(failed, {.error = "again", .delay = 100ms}));
    }
    if (!released.empty()) {
      EXPECT_TRUE(client.release(released, {.delay = 100ms}));
    }
  }

  const ChildServer& server_;
  Rng rng_;
  std::uint64_t tasks_ = 0;
};

TEST(Endurance, AServerUnderLoadStaysBounded) {
  if (mallinfo2().uordblks == 0) GTEST_SKIP() << "another allocator";
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  TestFolder folder;
  const std::string data = folder / "data";
  ChildServer server({.program = DETENT_BINARY, .data = data, .flags = {"--memory", "64M"}});
  ASSERT_TRUE(server.start());
  Load load(server, seed);
  std::vector<Sample> samples;
  const MonotonicTime start = SystemClock().now();
  constexpr std::size_t kFewestSamples = 12;
  while ((SystemClock().now() - start < time_wanted() || samples.size() < kFewestSamples) &&
         !HasFailure()) {
    load.round();
    const std::chrono::duration<double, std::ratio<3600>> time = SystemClock().now() - start;
    samples.push_back({.hours = time.count(),
                       .memory_mb = static_cast<double>(server.resident_bytes()) / (1 << 20),
                       .disk_mb = folder_mb(data),
                       .descriptors = static_cast<double>(server.open_descriptors())});
  }
  const Sample& last = samples.back();
  std::printf(
      "%llu tasks in %.2f h: memory %.1f MB (%.1f at first), disk %.1f MB, %g descriptors\n",
      static_cast<unsigned long long>(load.tasks()), last.hours, last.memory_mb,
      samples[samples.size() / 4].memory_mb, last.disk_mb, last.descriptors);
  EXPECT_EQ(findings(samples), std::vector<std::string>{});
  EXPECT_LE(last.memory_mb, 200) << "64 MB were allowed";
}

}  // namespace
}  // namespace detent
