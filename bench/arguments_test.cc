// Valid and invalid command lines of the benchmarks.
#include "bench/arguments.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace detent::bench {
namespace {

struct Options {
  double box_seconds = 1;
  std::uint32_t repetitions = 3;
  std::uint32_t waiting = 1'000;
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> small_counts;
  std::filesystem::path folder;
  bool is_quick = false;

  bool read(const std::vector<std::string>& arguments) {
    return read_arguments(arguments, {{"--quick", [this] { is_quick = true; }}},
                          {{"--box", into(box_seconds)},
                           {"--reps", repetitions_into(repetitions)},
                           {"--waiting", into(waiting)},
                           {"--seed", into(seed)},
                           {"--n", into(counts)},
                           {"--small", into(small_counts, 1)},
                           {"--folder", into(folder)}});
  }
};

TEST(BenchArguments, CountsMayHaveASmallerLeastCount) {
  Options options;
  ASSERT_TRUE(options.read({"--small", "1,99,1k"}));
  EXPECT_EQ(options.small_counts, (std::vector<std::uint32_t>{1, 99, 1'000}));
  EXPECT_FALSE(options.read({"--small", "0"}));
  EXPECT_FALSE(options.read({"--n", "1,99,1k"}));
}

TEST(BenchArguments, AreReadIntoWhatTheyName) {
  Options options;
  ASSERT_TRUE(options.read(
      {"--box", "0.25", "--quick", "--reps", "7", "--waiting", "2.5k", "--n", "100,10k,1m"}));
  EXPECT_EQ(options.box_seconds, 0.25);
  EXPECT_TRUE(options.is_quick);
  EXPECT_EQ(options.repetitions, 7u);
  EXPECT_EQ(options.waiting, 2'500u);
  EXPECT_EQ(options.counts, (std::vector<std::uint32_t>{100, 10'000, 1'000'000}));
}

TEST(BenchArguments, ANumberIsAllOfItsTextAndAboveZero) {
  for (const char* text : {"x", "", "1x", "1k", " 1", "0", "-1", "nan", "inf", "1e999", "1 "}) {
    Options options;
    EXPECT_FALSE(options.read({"--box", text})) << text;
    EXPECT_EQ(options.box_seconds, 1) << text;
  }
}

TEST(BenchArguments, RepetitionsAreANumberOfAtLeastOne) {
  for (const char* text : {"x", "", "3x", "0", "0.5", "-1", "nan", "1e9"}) {
    Options options;
    EXPECT_FALSE(options.read({"--reps", text})) << text;
    EXPECT_EQ(options.repetitions, 3u) << text;
  }
}

TEST(BenchArguments, ASeedIsAnyWholeNumber) {
  Options options;
  for (const char* text : {"x", "", "1x", "1.5", "1k", " 1", "-1", "18446744073709551616"}) {
    EXPECT_FALSE(options.read({"--seed", text})) << text;
    EXPECT_EQ(options.seed, 1u) << text;
  }
  EXPECT_TRUE(options.read({"--seed", "0"}));
  EXPECT_EQ(options.seed, 0u);
  EXPECT_TRUE(options.read({"--seed", "18446744073709551615"}));
  EXPECT_EQ(options.seed, 18'446'744'073'709'551'615u);
}

TEST(BenchArguments, ACountIsFromAHundredToABillionInOnesThousandsOrMillions) {
  for (const char* text : {"x", "", "99", "1001m", "1g", "1kk", "nan", "-1k"}) {
    Options options;
    EXPECT_FALSE(options.read({"--waiting", text})) << text;
    EXPECT_EQ(options.waiting, 1'000u) << text;
    EXPECT_FALSE(options.read({"--n", "1k," + std::string(text) + ",1k"})) << text;
    EXPECT_TRUE(options.counts.empty()) << text;
  }
}

TEST(BenchArguments, WhatIsNotNamedAndWhatHasNoValueIsRefused) {
  Options options;
  EXPECT_FALSE(options.read({"--boxes", "1"}));
  EXPECT_FALSE(options.read({"--box"}));
  EXPECT_FALSE(options.read({"1"}));
}

TEST(BenchArguments, ANameIsNotTakenForAValue) {
  for (const char* name : {"--folder", "--quick", "--other"}) {
    Options options;
    EXPECT_FALSE(options.read({"--folder", name, "x"})) << name;
    EXPECT_FALSE(options.read({"--folder", name})) << name;
    EXPECT_EQ(options.folder, "") << name;
  }
}

}  // namespace
}  // namespace detent::bench
