#include "store/rocksdb/database/rocksdb_error.h"

#include <string>

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

}  // namespace

Error to_error(std::string_view context, const rocksdb::Status& status) {
  DETENT_CHECK(!status.ok());
  return with_context(context, {code_of(status), status.ToString(), ""});
}

}  // namespace detent
