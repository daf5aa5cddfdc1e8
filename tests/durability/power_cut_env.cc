#include "tests/durability/power_cut_env.h"

#include <rocksdb/system_clock.h>

#include <utility>

namespace detent {

namespace {

class ImpatientClock final : public rocksdb::SystemClockWrapper {
 public:
  using rocksdb::SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "ImpatientClock"; }
  void SleepForMicroseconds(int /*micros*/) override {}
};

class ImpatientEnv final : public rocksdb::EnvWrapper {
 public:
  explicit ImpatientEnv(std::unique_ptr<rocksdb::Env> env) : EnvWrapper(std::move(env)) {
    file_system_ = target()->GetFileSystem();
    system_clock_ = std::make_shared<ImpatientClock>(target()->GetSystemClock());
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_env(PowerCutFileSystem& disk) {
  // RocksDB requires a shared_ptr, but the caller stays the owner.
  std::shared_ptr<rocksdb::FileSystem> borrowed(&disk, [](rocksdb::FileSystem*) {});
  return std::make_unique<ImpatientEnv>(rocksdb::NewCompositeEnv(borrowed));
}

}  // namespace detent
