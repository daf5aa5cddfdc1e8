#include "net/message/input_buffer.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent::net {
namespace {

TEST(InputBuffer, DoesNotCopyInputThatIsTakenWhole) {
  InputBuffer buffer;
  const std::string_view fresh = "all of it";
  const std::string_view joined = buffer.join(fresh);
  EXPECT_EQ(joined.data(), fresh.data());
  buffer.drop(joined, joined.size());
  EXPECT_TRUE(buffer.empty());
}

// The parser takes random numbers of bytes from random reads. It must get every byte once, in
// order.
TEST(InputBuffer, GivesEveryByteOnceAndInOrder) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  InputBuffer buffer;
  std::string sent;
  std::string taken;
  for (int round = 0; round < 5000; ++round) {
    std::string fresh(rng.below(3) == 0 ? 0 : rng.below(20), ' ');
    for (char& c : fresh) c = static_cast<char>(rng.below(256));
    sent += fresh;
    const std::string_view joined = buffer.join(fresh);
    ASSERT_EQ(taken.size() + joined.size(), sent.size());
    const std::size_t size = rng.below(static_cast<std::uint32_t>(joined.size()) + 1);
    taken += joined.substr(0, size);
    buffer.drop(joined, size);
    ASSERT_EQ(buffer.empty(), taken.size() == sent.size());
  }
  EXPECT_EQ(taken, sent.substr(0, taken.size()));
}

}  // namespace
}  // namespace detent::net
