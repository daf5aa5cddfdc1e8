#include "tracing/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kSpan = "b7ad6b7169203331";

TEST(TraceContext, AHeaderIsReadAndWritten) {
  const std::string header = "00-" + kTrace + "-" + kSpan + "-01";
  const auto context = parse_traceparent(header);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, (TraceId{0x0af7651916cd43dd, 0x8448eb211c80319c}));
  EXPECT_EQ(context->span, SpanId{0xb7ad6b7169203331});
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(to_traceparent(*context), header);
}

TEST(TraceContext, OnlyTheLastFlagMeansSampled) {
  const std::string begin = "00-" + kTrace + "-" + kSpan + "-";
  EXPECT_FALSE(parse_traceparent(begin + "00")->is_sampled);
  EXPECT_FALSE(parse_traceparent(begin + "02")->is_sampled);
  EXPECT_TRUE(parse_traceparent(begin + "03")->is_sampled);
  EXPECT_TRUE(parse_traceparent(begin + "ff")->is_sampled);
  EXPECT_EQ(to_traceparent(*parse_traceparent(begin + "02")), begin + "00");
}

TEST(TraceContext, ALaterVersionIsReadLikeVersion00) {
  const std::string rest = kTrace + "-" + kSpan + "-01";
  const auto context = parse_traceparent("cc-" + rest + "-more");
  ASSERT_TRUE(context);
  EXPECT_EQ(to_traceparent(*context), "00-" + rest);
  EXPECT_FALSE(parse_traceparent("ff-" + rest));
}

TEST(TraceContext, MalformedHeadersAreNoTrace) {
  const std::string zero_trace(32, '0');
  const std::string zero_span(16, '0');
  const std::vector<std::string> all = {"",
                                        "mine",
                                        "00-" + zero_trace + "-" + kSpan + "-01",
                                        "00-" + kTrace + "-" + zero_span + "-01",
                                        "00-" + kTrace + "-" + kSpan,
                                        "00-" + kTrace + "-" + kSpan + "-01-more",
                                        "00-" + kTrace + "-" + kSpan + "-0g",
                                        "00-0AF7651916CD43DD8448EB211C80319C-" + kSpan + "-01"};
  for (const std::string& wrong : all) {
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
  }
}

TEST(TraceContext, SmallNumbersKeepTheirLeadingZeros) {
  const TraceContext context{.trace = {0, 1}, .span = {2}, .is_sampled = true};
  const std::string header = "00-00000000000000000000000000000001-0000000000000002-01";
  EXPECT_EQ(to_traceparent(context), header);
  EXPECT_EQ(parse_traceparent(header), context);
}

TEST(TraceContext, TheSampleIsAShareOfTheIds) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  int none = 0;
  int quarter = 0;
  int all = 0;
  constexpr int kIds = 10'000;
  for (int i = 0; i < kIds; ++i) {
    const TraceId id{rng.next(), rng.next()};
    none += is_in_sample(id, 0);
    quarter += is_in_sample(id, 0.25);
    all += is_in_sample(id, 1);
    // A trace in a small sample is also in every larger sample.
    EXPECT_LE(is_in_sample(id, 0.1), is_in_sample(id, 0.25));
  }
  EXPECT_EQ(none, 0);
  EXPECT_EQ(all, kIds);
  EXPECT_NEAR(4 * quarter, kIds, 1'200);  // seven standard deviations
}

}  // namespace
}  // namespace detent
