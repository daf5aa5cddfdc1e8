// Builds logs byte by byte and checks them. rocksdb_store_test.cc damages the logs of a real
// database.
#include "store/rocksdb/database/wal_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "base/testing/test_folder.h"

namespace detent {
namespace {

constexpr std::size_t kBlock = 32'768;
constexpr std::size_t kHeader = 7;

/// Writes RocksDB's log format.
class LogWriter {
 public:
  /// Appends one write, split into records if it does not fit into its block. Returns the position
  /// of the write.
  std::size_t write(std::string_view payload) {
    bool is_first = true;
    std::size_t begin = 0;
    do {
      std::size_t room = kBlock - log_.size() % kBlock;
      if (room < kHeader) {
        log_.append(room, '\0');
        room = kBlock;
      }
      if (is_first) begin = log_.size();
      const std::string_view part = payload.substr(0, room - kHeader);
      payload.remove_prefix(part.size());
      append(is_first ? (payload.empty() ? 1 : 2) : (payload.empty() ? 4 : 3), part);
      is_first = false;
    } while (!payload.empty());
    return begin;
  }
  /// Appends a write with the marker: earlier writes are not synced.
  std::size_t write_after_unsynced(std::string_view entries) {
    std::string batch(12, 'h');  // the header of a batch
    batch += '\x03';             // log data
    batch += static_cast<char>(kAfterUnsynced.size());
    batch += kAfterUnsynced;
    batch += entries;
    return write(batch);
  }
  const std::string& log() const { return log_; }

 private:
  void append(int type, std::string_view part) {
    std::string body(1, static_cast<char>(type));
    body.append(part);
    const std::uint32_t crc = crc32c(body);
    ByteWriter writer(log_);
    writer.u32(((crc >> 15) | (crc << 17)) + 0xA282'EAD8u);
    writer.u16(static_cast<std::uint16_t>(part.size()));
    writer.raw(body);
  }

  std::string log_;
};

std::string random_payload(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

/// Writes of different sizes, some of them over several blocks.
struct SampleLog {
  explicit SampleLog(std::uint64_t seed) {
    Rng rng(seed);
    for (const std::size_t size : {10u, 200u, 40'000u, 1u, 70'000u, 300u, 32'761u, 500u}) {
      begins.push_back(writer.write(random_payload(rng, size)));
    }
    begins.push_back(writer.write(random_payload(rng, 50'000)));  // the last one, over two blocks
  }
  LogWriter writer;
  std::vector<std::size_t> begins;
};

TEST(WalCheck, WholeLogsAreIntact) {
  EXPECT_EQ(examine_log(""), LogState::intact);
  EXPECT_EQ(examine_log(SampleLog(1).writer.log()), LogState::intact);
}

TEST(WalCheck, ReservedZerosAtTheEndAreIgnored) {
  const std::string zeros(100'000, '\0');
  EXPECT_EQ(examine_log(zeros), LogState::intact);
  const std::string log = SampleLog(2).writer.log();
  for (std::size_t count = 1; count < zeros.size(); count = count * 2 + 1) {
    EXPECT_EQ(examine_log(log + zeros.substr(0, count)), LogState::intact) << count;
  }
  EXPECT_EQ(examine_log(log.substr(0, log.size() - 1) + zeros), LogState::torn_tail);
}

TEST(WalCheck, WriteThatEndsInZerosIsCompleteBeforeReservedZeros) {
  LogWriter writer;
  writer.write("one");
  writer.write("two" + std::string(5'000, '\0'));
  EXPECT_EQ(examine_log(writer.log() + std::string(5'000, '\0')), LogState::intact);
  EXPECT_EQ(examine_log(writer.log().substr(0, writer.log().size() - 1)), LogState::torn_tail);
  std::string log = writer.log();
  log[3] ^= 1;
  EXPECT_EQ(examine_log(log), LogState::damaged)
      << "the second write is complete and has no marker";
}

TEST(WalCheck, CuttingTheLogAnywhereIsATornTail) {
  const SampleLog sample(3);
  const std::string& log = sample.writer.log();
  for (std::size_t size = 1; size < log.size(); size += 97) {
    const LogState state = examine_log(std::string_view(log).substr(0, size));
    ASSERT_NE(state, LogState::damaged) << "cut to " << size;
  }
  for (const std::size_t begin : sample.begins) {
    EXPECT_EQ(examine_log(std::string_view(log).substr(0, begin)), LogState::intact);
    EXPECT_EQ(examine_log(std::string_view(log).substr(0, begin + 1)), LogState::torn_tail);
  }
}

TEST(WalCheck, DamageAnywhereInTheLastWriteIsATornTail) {
  const SampleLog sample(4);
  for (std::size_t at = sample.begins.back(); at < sample.writer.log().size(); at += 511) {
    std::string log = sample.writer.log();
    log[at] = static_cast<char>(log[at] ^ 1);
    ASSERT_EQ(examine_log(log), LogState::torn_tail) << "byte " << at;
    if (at == sample.begins.back()) continue;
    log.replace(at, log.size() - at, log.size() - at, '\0');
    ASSERT_EQ(examine_log(log), LogState::torn_tail) << "zeros from byte " << at;
  }
}

TEST(WalCheck, DamageInAnyEarlierWriteIsDamage) {
  const SampleLog sample(5);
  for (std::size_t at = 0; at < sample.begins.back(); at += 1'009) {
    if (sample.begins.back() - at < kHeader) break;
    std::string log = sample.writer.log();
    log[at] = static_cast<char>(log[at] ^ 0x10);
    ASSERT_EQ(examine_log(log), LogState::damaged) << "byte " << at;
  }
}

// RocksDB itself skips a zeroed page in the middle without an error.
TEST(WalCheck, ZeroedPageInTheMiddleIsDamage) {
  LogWriter writer;
  Rng rng(6);
  while (writer.log().size() < 20'000) writer.write(random_payload(rng, 150));
  std::string log = writer.log();
  log.replace(4'096, 4'096, 4'096, '\0');
  EXPECT_EQ(examine_log(log), LogState::damaged);
}

TEST(WalCheck, DamagedLengthBeforeAnIntactWriteIsDamage) {
  LogWriter writer;
  const std::size_t second = (writer.write("one"), writer.write("two"));
  writer.write("three");
  std::string log = writer.log();
  log[second + 4] = 100;  // the length, so the start of the third write is unknown
  EXPECT_EQ(examine_log(log), LogState::damaged);
}

/// A synced write, followed by four writes that are not synced. Three of these have the marker.
struct BufferedLog {
  BufferedLog() {
    Rng rng(8);
    synced = writer.write(random_payload(rng, 300));
    begins.push_back(writer.write(random_payload(rng, 400)));
    for (const std::size_t size : {1'000u, 40'000u, 200u}) {
      begins.push_back(writer.write_after_unsynced(random_payload(rng, size)));
    }
  }
  std::string with_damage_at(std::size_t at) const {
    std::string log = writer.log();
    log[at] = static_cast<char>(log[at] ^ 1);
    return log;
  }
  LogWriter writer;
  std::size_t synced;
  std::vector<std::size_t> begins;
};

TEST(WalCheck, DamageInAnyWriteAfterTheLastSyncIsATornTail) {
  const BufferedLog sample;
  for (std::size_t at = sample.begins[0]; at < sample.writer.log().size(); at += 37) {
    ASSERT_EQ(examine_log(sample.with_damage_at(at)), LogState::torn_tail) << "byte " << at;
  }
  EXPECT_EQ(examine_log(sample.with_damage_at(sample.synced + 8)), LogState::damaged);
}

TEST(WalCheck, DamageBeforeAWriteWithoutTheMarkerIsDamage) {
  BufferedLog sample;
  sample.writer.write("all before this was synced");
  for (std::size_t at = 0; at < sample.writer.log().size() - 40; at += 37) {
    ASSERT_EQ(examine_log(sample.with_damage_at(at)), LogState::damaged) << "byte " << at;
  }
}

/// The marker counts only at the beginning of a write.
TEST(WalCheck, MarkerInsideTheDataOfAWriteIsIgnored) {
  LogWriter writer;
  writer.write("one");
  std::string data(40, 'd');
  data += "\x03\x08";
  data += kAfterUnsynced;
  writer.write(data);
  std::string log = writer.log();
  log[8] ^= 1;
  EXPECT_EQ(examine_log(log), LogState::damaged);
}

struct LogFolder {
  void add(const std::string& name, const std::string& log) {
    std::ofstream(folder / name, std::ios::binary) << log;
  }
  std::uintmax_t size(const std::string& name) { return std::filesystem::file_size(folder / name); }
  /// Calls mend_logs() and keeps the reported tails in `cut`.
  Result<void> check() {
    cut.clear();
    return mend_logs(DataFolder::open(folder.path()).value(),
                     [this](const CutTail& tail) { cut.push_back(tail); });
  }
  TestFolder folder;
  std::vector<CutTail> cut;
};

TEST(WalCheck, OnlyTheNewestLogMayBeTorn) {
  const std::string whole = SampleLog(7).writer.log();
  const std::string torn = whole.substr(0, whole.size() - 5);
  LogFolder newest;
  newest.add("000004.log", whole);
  newest.add("000005.log", torn);
  EXPECT_TRUE(newest.check());
  LogFolder older;
  older.add("000004.log", torn);
  older.add("000005.log", whole);
  const Result<void> refused = older.check();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::data_loss);
  EXPECT_NE(refused.error().message.find("000004.log"), std::string::npos);
}

/// The discarded bytes include newer logs, but no reserved zeros.
TEST(WalCheck, CutTailIsReportedOnceWithTheDiscardedBytes) {
  const std::string zeros(50'000, '\0');
  const BufferedLog older;
  LogWriter newer;
  newer.write_after_unsynced("not synced either");
  LogFolder torn;
  torn.add("000004.log", older.with_damage_at(older.begins[1] + 20) + zeros);
  torn.add("000005.log", newer.log() + zeros);
  ASSERT_TRUE(torn.check());
  const std::size_t discarded = older.writer.log().size() - older.begins[1] + newer.log().size();
  EXPECT_EQ(torn.cut, (std::vector<CutTail>{{"000004.log", older.begins[1], discarded}}));
  ASSERT_TRUE(torn.check());
  EXPECT_EQ(torn.cut, std::vector<CutTail>{}) << "the tail was already cut off";
  torn.add("000004.log", older.writer.log() + zeros);
  torn.add("000005.log", zeros);
  ASSERT_TRUE(torn.check());
  EXPECT_EQ(torn.cut, std::vector<CutTail>{}) << "reserved zeros are not a tail";
}

TEST(WalCheck, OlderLogMayBeTornIfNoLaterWriteWasSynced) {
  const BufferedLog older;
  LogWriter newer;
  newer.write_after_unsynced("not synced either");
  LogFolder torn;
  torn.add("000004.log", older.with_damage_at(older.begins[1] + 20));
  torn.add("000005.log", newer.log());
  EXPECT_TRUE(torn.check());
  EXPECT_EQ(std::filesystem::file_size(torn.folder / "000004.log"), older.begins[1]);
  EXPECT_EQ(std::filesystem::file_size(torn.folder / "000005.log"), 0u)
      << "this log follows a gap, so it is emptied";
  newer.write("all earlier writes are synced");
  torn.add("000004.log", older.with_damage_at(older.begins[1] + 20));
  torn.add("000005.log", newer.log());
  EXPECT_FALSE(torn.check());
  EXPECT_EQ(std::filesystem::file_size(torn.folder / "000004.log"), older.writer.log().size());
}

/// If the process crashes before an older log is closed, that log ends in zeros too.
TEST(WalCheck, ReservedZerosAreCutOffEveryLogAndHideNoTornTail) {
  const std::string zeros(50'000, '\0');
  const std::string whole = SampleLog(7).writer.log();
  LogFolder reserved;
  reserved.add("000003.log", zeros);
  reserved.add("000004.log", whole + zeros);
  reserved.add("000005.log", whole + zeros);
  EXPECT_TRUE(reserved.check());
  EXPECT_EQ(reserved.size("000003.log"), 0u);
  EXPECT_EQ(reserved.size("000004.log"), whole.size());
  EXPECT_EQ(reserved.size("000005.log"), whole.size());
  reserved.add("000004.log", whole.substr(0, whole.size() - 5) + zeros);
  EXPECT_FALSE(reserved.check());
  reserved.add("000004.log", whole + zeros + whole);
  EXPECT_FALSE(reserved.check());
  reserved.add("000004.log", whole + zeros);
  reserved.add("000005.log", whole.substr(0, whole.size() - 5) + zeros);
  EXPECT_TRUE(reserved.check());
  EXPECT_LT(reserved.size("000005.log"), whole.size() - 5);
}

/// An interrupted start leaves an empty newer log. The next start must not take the torn tail for
/// damage in the middle.
TEST(WalCheck, TornTailIsCutOffBeforeLaterLogsAreWritten) {
  const std::string whole = SampleLog(7).writer.log();
  LogFolder torn;
  torn.add("000004.log", whole.substr(0, whole.size() - 5));
  torn.add("000005.log", "");
  EXPECT_TRUE(torn.check());
  torn.add("000005.log", whole);
  EXPECT_TRUE(torn.check()) << "the torn tail was cut off";
}

TEST(WalCheck, TornManifestIsCutOffButAnInvalidOneIsKept) {
  const std::string whole = SampleLog(7).writer.log();
  LogFolder torn;
  torn.add("CURRENT", "MANIFEST-000007\n");
  torn.add("MANIFEST-000007", whole.substr(0, whole.size() - 5));
  EXPECT_TRUE(torn.check());
  EXPECT_LT(std::filesystem::file_size(torn.folder / "MANIFEST-000007"), whole.size() - 5);
  torn.add("MANIFEST-000007", "not a manifest");
  EXPECT_TRUE(torn.check());
  EXPECT_EQ(std::filesystem::file_size(torn.folder / "MANIFEST-000007"), 14u);
  torn.add("CURRENT", "elsewhere");
  EXPECT_FALSE(torn.check());
}

TEST(WalCheck, FolderWithoutLogsIsFine) { EXPECT_TRUE(LogFolder().check()); }

}  // namespace
}  // namespace detent
