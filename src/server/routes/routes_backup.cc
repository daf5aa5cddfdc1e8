// The routes of `detent backup`. backup/backups.h explains how the command and the server share the
// work.
#include <optional>

#include "protocol/json/backup_codec.h"
#include "server/backup/backups.h"
#include "server/routes/routes.h"

namespace detent::server {
namespace {

Error not_in_a_folder() {
  return {ErrorCode::conflict,
          "this server keeps its tasks in PostgreSQL: back up the database with pg_dump or "
          "pg_basebackup",
          ""};
}

}  // namespace

void Routes::begin_backup(const Call& call) {
  if (const auto plain = json::parse_nothing(call.request.body); !plain) {
    return call.reply.send_error(plain.error());
  }
  if (options_.backups == nullptr) return call.reply.send_error(not_in_a_folder());
  options_.backups->begin([reply = call.reply](const Result<json::BackupBegun>& begun) {
    if (!begun) return reply.send_error(begun.error());
    reply.send_json(201, json::render_backup_begun(*begun));
  });
}

void Routes::end_backup(const Call& call) {
  if (options_.backups == nullptr) return call.reply.send_error(not_in_a_folder());
  const std::string& body = call.request.body;
  const Result<json::BackupEnd> end = json::parse_backup_end(body.empty() ? "{}" : body);
  if (!end) return call.reply.send_error(end.error());
  options_.backups->end(*end, [reply = call.reply](const Result<void>& ended) {
    if (!ended) return reply.send_error(ended.error());
    reply.send_json(200, R"({"status":"ok"})");
  });
}

}  // namespace detent::server
