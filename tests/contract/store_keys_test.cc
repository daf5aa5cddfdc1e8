// The contract of store/store.h: keys. A key stands for a task, and is removed some time after the
// task has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/contract/store_fixture.h"

namespace detent {
namespace {

KeyRecord key_record(std::string key, std::uint64_t n, std::optional<WallTime> expires_at = {}) {
  return {.queue = 1,
          .key = std::move(key),
          .id = id_of(n),
          .content = n * 0x9E3779B97F4A7C15u,
          .expires_at = expires_at};
}

template <class Medium>
class StoreKeys : public StoreFixture<Medium> {
 protected:
  void write_key(KeyRecord record) {
    WriteBatch batch;
    batch.keys.push_back(std::move(record));
    this->write(batch);
  }
  std::vector<std::string> names_after(std::uint32_t queue, std::string_view after,
                                       std::size_t limit) {
    const KeyPage page = this->store_->read_keys(queue, after, limit).value();
    std::vector<std::string> names;
    for (const KeyRecord& record : page.records) {
      EXPECT_EQ(record.queue, queue);
      names.push_back(record.key);
    }
    return names;
  }
  std::optional<KeyRecord> key(std::string_view key) {
    return this->store_->find_key(1, key).value();
  }
  std::size_t trim(std::int64_t now_ms, std::size_t limit = 100) {
    return this->store_->trim_keys(at_ms(now_ms), limit).value();
  }
};
TYPED_TEST_SUITE(StoreKeys, Media, MediumNames);

TYPED_TEST(StoreKeys, AKeyReadsBackAndCanBeReplaced) {
  const std::string longest(kMaxKeyBytes, '\xC3');
  this->write_key(key_record("k", 1));
  this->write_key(key_record("k2", 2, at_ms(50)));
  this->write_key(key_record(longest, 3));
  KeyRecord elsewhere = key_record("k", 4);
  elsewhere.queue = 2;
  this->write_key(elsewhere);
  this->write_key(key_record("k2", 5));
  this->reopen();
  EXPECT_EQ(this->key("k"), key_record("k", 1));
  EXPECT_EQ(this->key("k2"), key_record("k2", 5));
  EXPECT_EQ(this->key(longest), key_record(longest, 3));
  EXPECT_EQ(this->store_->find_key(2, "k").value(), elsewhere);
  EXPECT_EQ(this->key(""), std::nullopt);
  EXPECT_EQ(this->key("k3"), std::nullopt);
  EXPECT_EQ(this->store_->find_key(3, "k").value(), std::nullopt);
}

TYPED_TEST(StoreKeys, FindKeysReturnsEachKeyOnce) {
  EXPECT_EQ(this->store_->find_keys(1, {}).value(), std::vector<KeyRecord>{});
  std::vector<std::string> asked;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    this->write_key(key_record("k" + std::to_string(n), n));
    asked.push_back("k" + std::to_string(101 - n));
  }
  asked.insert(asked.end(), {"k7", "none", ""});
  std::vector<KeyRecord> found = this->store_->find_keys(1, asked).value();
  std::ranges::sort(found, {}, &KeyRecord::id);
  ASSERT_EQ(found.size(), 100u);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    EXPECT_EQ(found[n - 1], key_record("k" + std::to_string(n), n));
  }
  EXPECT_EQ(this->store_->find_keys(2, asked).value(), std::vector<KeyRecord>{});
}

TYPED_TEST(StoreKeys, AKeyCanBeReadUntilItIsTrimmed) {
  this->write_key(key_record("k", 1, at_ms(100)));
  EXPECT_EQ(this->trim(99), 0u);
  EXPECT_EQ(this->key("k"), key_record("k", 1, at_ms(100)));
  EXPECT_EQ(this->trim(100), 1u);
  EXPECT_EQ(this->key("k"), std::nullopt);
  EXPECT_EQ(this->trim(100), 0u);
  this->reopen();
  EXPECT_EQ(this->key("k"), std::nullopt);
}

TYPED_TEST(StoreKeys, AnExpiryThatTrimmingWouldNotFindIsWrong) {
  const std::vector<KeyRecord> keys{key_record("a", 1, at_ms(100)), key_record("b", 2),
                                    key_record("c", 3, at_ms(100)), key_record("d", 4, at_ms(50))};
  WriteBatch batch;
  batch.keys = keys;
  batch.keys[1].expires_at = at_ms(70);
  this->write(batch);
  batch.keys = {keys[1]};  // the entry of its old expiry may remain
  this->write(batch);
  EXPECT_EQ(this->store_->wrong_expiries(keys).value(), std::vector<KeyRecord>{});
  EXPECT_EQ(this->store_->wrong_expiries({}).value(), std::vector<KeyRecord>{});
  this->drop_expiry(keys[2]);
  EXPECT_EQ(this->store_->wrong_expiries(keys).value(), std::vector<KeyRecord>{keys[2]});
  EXPECT_EQ(this->trim(1'000), 2u);
  EXPECT_EQ(this->key("b"), keys[1]);
  EXPECT_EQ(this->key("c"), keys[2]);
}

#if defined(DETENT_POSTGRES_CONTRACT)
// In PostgreSQL the expiry is a column, and trimming reads only this column.
TYPED_TEST(StoreKeys, AnExpiryThatDiffersFromTheRecordIsWrong) {
  const std::vector<KeyRecord> keys{key_record("a", 1, at_ms(100)), key_record("b", 2)};
  WriteBatch batch;
  batch.keys = keys;
  this->write(batch);
  for (const KeyRecord& record : keys) this->medium_.set_expiry(record, "50");
  EXPECT_EQ(this->store_->wrong_expiries(keys).value(), keys);
}
#endif

TYPED_TEST(StoreKeys, KeysAreTrimmedInTheOrderOfExpiryUpToTheLimit) {
  WriteBatch batch;
  for (std::uint64_t n = 1; n <= 10; ++n) {  // every second key is in queue 2
    const auto expires_ms = static_cast<std::int64_t>(n * 7 % 11 * 100);
    batch.keys.push_back(key_record("k" + std::to_string(n), n, at_ms(expires_ms)));
    if (n % 2 == 0) batch.keys.back().queue = 2;
  }
  this->write(batch);
  EXPECT_EQ(this->trim(750, 3), 3u);
  for (const KeyRecord& record : batch.keys) {
    EXPECT_EQ(this->store_->find_key(record.queue, record.key).value().has_value(),
              record.expires_at > at_ms(300));
  }
  EXPECT_EQ(this->trim(750), 4u);
  for (const KeyRecord& record : batch.keys) {
    EXPECT_EQ(this->store_->find_key(record.queue, record.key).value().has_value(),
              record.expires_at > at_ms(750));
  }
  EXPECT_EQ(this->trim(kNeverDue.time_since_epoch().count()), 3u);
}

TYPED_TEST(StoreKeys, AKeyWithoutAnExpiryIsNeverTrimmed) {
  this->write_key(key_record("k", 1));
  EXPECT_EQ(this->trim(kNeverDue.time_since_epoch().count()), 0u);
  EXPECT_EQ(this->key("k"), key_record("k", 1));
}

// The task of the key ended, so the key got an expiry. Then a new task took over the key.
TYPED_TEST(StoreKeys, AKeyWithANewTaskIsNotTrimmed) {
  this->write_key(key_record("k", 1, at_ms(100)));
  this->write_key(key_record("k", 2));
  this->reopen();
  EXPECT_EQ(this->trim(1'000), 0u);
  EXPECT_EQ(this->key("k"), key_record("k", 2));
}

TYPED_TEST(StoreKeys, AKeyWithANewExpiryIsTrimmedAtTheNewExpiry) {
  this->write_key(key_record("later", 1, at_ms(100)));
  this->write_key(key_record("later", 1, at_ms(300)));
  this->write_key(key_record("earlier", 2, at_ms(300)));
  this->write_key(key_record("earlier", 2, at_ms(100)));
  EXPECT_EQ(this->trim(200), 1u);
  EXPECT_EQ(this->key("earlier"), std::nullopt);
  EXPECT_EQ(this->key("later"), key_record("later", 1, at_ms(300)));
  EXPECT_EQ(this->trim(300), 1u);
  EXPECT_EQ(this->key("later"), std::nullopt);
}

TYPED_TEST(StoreKeys, EntriesOfOldExpiriesDoNotCountAgainstTheLimit) {
  for (std::int64_t i = 1; i <= 5; ++i) this->write_key(key_record("moved", 1, at_ms(i)));
  this->write_key(key_record("moved", 1, at_ms(900)));
  this->write_key(key_record("k", 2, at_ms(10)));
  EXPECT_EQ(this->trim(100, 1), 1u);
  EXPECT_EQ(this->key("k"), std::nullopt);
  EXPECT_TRUE(this->key("moved").has_value());
}

TYPED_TEST(StoreKeys, KeysOfAQueueAreReadInByteOrderAfterAKey) {
  for (const std::uint32_t queue : {std::uint32_t{2}, kNoQueue, std::uint32_t{1}}) {
    for (const std::string name : {"b", "a", "\xFF", "ab"}) {
      KeyRecord record = key_record(name, queue + 1, at_ms(5));
      if (name != "ab") record.expires_at.reset();
      record.queue = queue;
      this->write_key(record);
    }
  }
  this->reopen();
  for (const std::uint32_t queue : {kNoQueue, std::uint32_t{1}, std::uint32_t{2}}) {
    EXPECT_EQ(this->names_after(queue, "", 9), (std::vector<std::string>{"a", "ab", "b", "\xFF"}));
    EXPECT_EQ(this->names_after(queue, "", 2), (std::vector<std::string>{"a", "ab"}));
    EXPECT_EQ(this->names_after(queue, "ab", 1), (std::vector<std::string>{"b"}));
    EXPECT_EQ(this->names_after(queue, "aa", 1), (std::vector<std::string>{"ab"}))
        << "there is no key aa";
    EXPECT_EQ(this->names_after(queue, "\xFF", 9), std::vector<std::string>{});
    EXPECT_EQ(this->store_->read_keys(queue, "a", 1).value().records.at(0).expires_at, at_ms(5));
  }
  EXPECT_EQ(this->names_after(3, "", 9), std::vector<std::string>{});
}

TYPED_TEST(StoreKeys, AKeyCanBeWrittenAgainAfterItWasTrimmed) {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    this->write_key(key_record("k", n, at_ms(100)));
    EXPECT_EQ(this->trim(100), 1u);
    EXPECT_EQ(this->key("k"), std::nullopt);
  }
  this->write_key(key_record("k", 4));
  EXPECT_EQ(this->trim(1'000), 0u);
  EXPECT_EQ(this->key("k"), key_record("k", 4));
}

TYPED_TEST(StoreKeys, TrimFindsAKeyThatExpiresBeforeTheKeysTrimmedLast) {
  this->write_key(key_record("a", 1, at_ms(50)));
  this->write_key(key_record("b", 2, at_ms(80)));
  EXPECT_EQ(this->trim(100), 2u);
  this->write_key(key_record("c", 3, at_ms(30)));
  this->write_key(key_record("d", 4, at_ms(80)));
  EXPECT_EQ(this->trim(100), 2u);
}

}  // namespace
}  // namespace detent
