#include "store/rocksdb/database/rocksdb_error.h"

#include <string>
#include <string_view>
#include <utility>

#include "detent/check.h"

namespace detent {

namespace {

ErrorCode code_of(const rocksdb::Status& status) {
  if (status.IsCorruption()) return ErrorCode::data_loss;
  if (status.IsNoSpace()) return ErrorCode::resource_exhausted;
  if (status.IsIOError() || status.IsBusy() || status.IsTimedOut() || status.IsTryAgain() ||
      status.IsIncomplete() || status.IsShutdownInProgress()) {
    return ErrorCode::unavailable;
  }
  return ErrorCode::internal;
}

/// RocksDB puts the reason of the system into its message twice: "IO error: No space left on
/// device: While appending to file: 000012.log: No space left on device". Keeps the last one.
std::string without_repetition(std::string text) {
  constexpr std::string_view kBetween = ": ";
  const std::size_t last = text.rfind(kBetween);
  if (last == std::string::npos) return text;
  const std::string repeated = text.substr(last) + std::string(kBetween);
  const std::size_t at = text.find(repeated);
  return at < last ? text.erase(at, repeated.size() - kBetween.size()) : text;
}

}  // namespace

Error to_error(std::string_view context, const rocksdb::Status& status) {
  DETENT_CHECK(!status.ok());
  return with_context(context, {code_of(status), without_repetition(status.ToString()), ""});
}

}  // namespace detent
