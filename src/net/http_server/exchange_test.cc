#include "net/http_server/exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace detent::net {
namespace {

/// A connection that only records its calls: the status of each answer, or 0 for a dropped request.
class Recorder final : public AnswerTarget {
 public:
  void post_answer(std::optional<HttpResponse> response) override {
    posted.push_back(response ? response->status : 0);
  }
  void post_head(HttpResponse head) override { posted.push_back(head.status); }
  void post_look() override { ++looks; }
  std::vector<int> posted;
  int looks = 0;
};

constexpr std::size_t kMaxStreamBytes = 10;

struct ExchangeTest : testing::Test {
  Recorder recorder;
  std::shared_ptr<ExchangeLink> link = std::make_shared<ExchangeLink>(recorder, kMaxStreamBytes);
};

TEST_F(ExchangeTest, OnlyTheFirstAnswerCounts) {
  const Responder responder = ExchangeLink::open(link);
  EXPECT_TRUE(link->is_waiting());
  responder.send({.status = 200});
  responder.send({.status = 201});
  EXPECT_FALSE(link->is_waiting());
  EXPECT_EQ(recorder.posted, std::vector<int>{200});
}

TEST_F(ExchangeTest, DroppingTheLastCopyIsAnAnswer) {
  std::optional<Responder> first = ExchangeLink::open(link);
  std::optional<Responder> second = first;
  first.reset();
  EXPECT_TRUE(recorder.posted.empty());
  second.reset();
  EXPECT_EQ(recorder.posted, std::vector<int>{0});
}

TEST_F(ExchangeTest, AnOldResponderCannotAnswerTheNextRequest) {
  const Responder old = ExchangeLink::open(link);
  old.send({.status = 200});
  const Responder current = ExchangeLink::open(link);
  old.send({.status = 500});
  old.on_gone([] { FAIL() << "the request of this responder was answered"; });
  link->close();
  EXPECT_EQ(recorder.posted, std::vector<int>{200});
}

TEST_F(ExchangeTest, GoneRunsOnceWhenTheConnectionCloses) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([&gone] { ++gone; });
  link->close();
  link->close();
  EXPECT_EQ(gone, 1);
  responder.send({.status = 200});
  EXPECT_TRUE(recorder.posted.empty());
}

TEST_F(ExchangeTest, GoneRunsImmediatelyIfTheConnectionIsClosed) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  link->close();
  responder.on_gone([&gone] { ++gone; });
  EXPECT_EQ(gone, 1);
}

TEST_F(ExchangeTest, GoneNeverRunsAfterAnAnswer) {
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([] { FAIL() << "answered before"; });
  responder.send({.status = 200});
  responder.on_gone([] { FAIL() << "answered before"; });
  link->close();
  responder.on_gone([] { FAIL() << "answered before"; });
}

TEST_F(ExchangeTest, TheSecondGoneReplacesTheFirst) {
  int gone = 0;
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([] { FAIL() << "replaced"; });
  responder.on_gone([&gone] { ++gone; });
  link->close();
  EXPECT_EQ(gone, 1);
}

TEST_F(ExchangeTest, GoneMayHoldItsOwnResponder) {
  std::optional<Responder> responder = ExchangeLink::open(link);
  responder->on_gone([copy = *responder] { copy.send({.status = 200}); });
  responder.reset();
  link->close();  // runs the callback and destroys the last copy; ASan would report a leak
  EXPECT_TRUE(recorder.posted.empty());
}

// A client disconnects while its request is answered: exactly one of the two events has an effect.
TEST_F(ExchangeTest, AnswerAndGoneExcludeEachOther) {
  for (int round = 0; round < 500; ++round) {
    Recorder target;
    const auto raced = std::make_shared<ExchangeLink>(target, kMaxStreamBytes);
    int gone = 0;
    std::optional<Responder> responder = ExchangeLink::open(raced);
    responder->on_gone([&gone] { ++gone; });
    std::thread answering([moved = *std::move(responder)] { moved.send({.status = 200}); });
    raced->close();
    answering.join();
    EXPECT_EQ(static_cast<std::size_t>(gone) + target.posted.size(), 1u);
  }
}

TEST_F(ExchangeTest, BytesThatCollectDuringAWriteAreTheNextPart) {
  const ResponseStream stream = ExchangeLink::open(link).stream({.body = "a"});
  EXPECT_TRUE(stream.send("b"));
  EXPECT_EQ(recorder.posted, std::vector<int>{200});
  EXPECT_EQ(link->take().bytes, "ab");
  EXPECT_TRUE(stream.send("c"));
  EXPECT_TRUE(stream.send("d"));
  EXPECT_EQ(recorder.looks, 2) << "one look for each part";
  link->part_written();
  const StreamPart next = link->take();
  EXPECT_EQ(next.bytes, "cd");
  EXPECT_FALSE(next.is_last);
  stream.end();
  EXPECT_FALSE(stream.send("late"));
  EXPECT_TRUE(link->take().is_last);
  const Responder another = ExchangeLink::open(link);
  EXPECT_FALSE(stream.send("into the answer of another request"));
}

// The look for bytes that came during a write could not take them, so part_written() looks again.
TEST_F(ExchangeTest, AWrittenPartCausesAnotherLookOnlyIfBytesWait) {
  const ResponseStream stream = ExchangeLink::open(link).stream({});
  stream.send("a");
  link->take();
  link->part_written();
  EXPECT_EQ(recorder.looks, 1);
  stream.send("b");
  EXPECT_EQ(recorder.looks, 2);
  link->take();
  stream.send("c");
  link->part_written();
  EXPECT_EQ(recorder.looks, 4);
  link->take();
  stream.end();
  link->part_written();
  EXPECT_EQ(recorder.looks, 6);
}

TEST_F(ExchangeTest, AStreamIsCutAboveItsLimit) {
  int gone = 0;
  const ResponseStream stream = ExchangeLink::open(link).stream({});
  stream.on_gone([&gone] { ++gone; });
  EXPECT_TRUE(stream.send("12345"));
  EXPECT_EQ(link->take().bytes,
            "12345");  // these bytes still count, because they are being written
  EXPECT_TRUE(stream.send("67890"));
  EXPECT_FALSE(link->is_cut());
  const int looks = recorder.looks;
  EXPECT_FALSE(stream.send("x"));
  EXPECT_TRUE(link->is_cut());
  EXPECT_EQ(recorder.looks, looks + 1);
  EXPECT_EQ(link->take().bytes, "");
  EXPECT_FALSE(stream.send(""));
  link->close();
  EXPECT_EQ(gone, 1);
}

TEST_F(ExchangeTest, WrittenBytesDoNotCountForTheLimit) {
  const ResponseStream stream = ExchangeLink::open(link).stream({});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream.send("1234567890"));
    EXPECT_EQ(link->take().bytes.size(), 10u);
    link->part_written();
  }
}

TEST_F(ExchangeTest, AStreamThatIsDroppedIsCut) {
  std::optional<Responder> responder = ExchangeLink::open(link);
  std::optional<ResponseStream> stream = responder->stream({});
  stream->on_gone([] { FAIL() << "the callback was destroyed with the stream"; });
  responder.reset();
  EXPECT_FALSE(link->is_cut());
  stream.reset();
  EXPECT_TRUE(link->is_cut());
  link->close();
}

TEST_F(ExchangeTest, AStreamIsTheAnswer) {
  const Responder responder = ExchangeLink::open(link);
  responder.on_gone([] { FAIL() << "answered before"; });
  const ResponseStream stream = responder.stream({.status = 201});
  responder.send({.status = 200});
  const ResponseStream second = responder.stream({.status = 202});
  EXPECT_EQ(recorder.posted, std::vector<int>{201});
  EXPECT_FALSE(second.send("x"));
  second.end();
  bool is_over = false;
  second.on_gone([&is_over] { is_over = true; });
  EXPECT_TRUE(is_over);
  EXPECT_TRUE(stream.send("x"));
  link->close();
}

TEST_F(ExchangeTest, GoneOfAStreamRunsOnceAndNeverAfterItsEnd) {
  int gone = 0;
  const ResponseStream cut_short = ExchangeLink::open(link).stream({});
  cut_short.on_gone([] { FAIL() << "replaced"; });
  cut_short.on_gone([&gone] { ++gone; });
  link->refuse_body();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(cut_short.send("x"));
  const ResponseStream ended = ExchangeLink::open(link).stream({});
  ended.on_gone([] { FAIL() << "it was ended"; });
  ended.end();
  link->close();
  cut_short.on_gone([&gone] { ++gone; });  // the stream is already cut, so it runs immediately
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace detent::net
