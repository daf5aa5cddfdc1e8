#include "protocol/json/backup_codec.h"

#include "protocol/json/field_table.h"

namespace detent::json {

namespace {

using BegunFields =
    AnswerBody<BackupBegun, Required<"folder", &BackupBegun::folder>,
               Required<"data", &BackupBegun::data>, Required<"made_at", &BackupBegun::made_at>>;
using EndFields = RequestBody<BackupEnd, Optional<"bytes", &BackupEnd::bytes, Count>,
                              Optional<"copied_bytes", &BackupEnd::copied_bytes, Count>,
                              Optional<"made_at", &BackupEnd::made_at>>;

}  // namespace

std::string render_backup_begun(const BackupBegun& begun) { return BegunFields::render(begun); }

Result<BackupBegun> parse_backup_begun(std::string_view body) { return BegunFields::parse(body); }

std::string render_backup_end(const BackupEnd& end) { return EndFields::render(end); }

Result<BackupEnd> parse_backup_end(std::string_view body) {
  ASSIGN_OR_RETURN(const BackupEnd end, EndFields::parse(body));
  if (end.is_complete() && end.made_at == WallTime{}) {
    return Error{ErrorCode::invalid_argument, "made_at is required with bytes", "made_at"};
  }
  return end;
}

}  // namespace detent::json
