#include "store/postgres/postgres_store.h"

#include <libpq-fe.h>

#include <map>
#include <utility>

#include "store/postgres/open_postgres_store.h"

namespace detent {

namespace {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};

Result<void> check_url(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> parsed(
      PQconninfoParse(url.c_str(), nullptr));
  if (parsed && is_postgres_url(url)) return ok();
  return Error{ErrorCode::invalid_argument,
               "open store: the URL is not the address of a PostgreSQL database; use "
               "postgres://user@host:5432/database",
               "store"};
}

}  // namespace

Result<std::unique_ptr<Store>> PostgresStore::open(const PostgresStoreOptions& options,
                                                   Clock& clock) {
  TRY(check_url(options.url));
  return OpenPostgresStore::open(options, clock);
}

Result<std::uint32_t> PostgresStore::shards_to_read(const PostgresStoreOptions& options) {
  TRY(check_url(options.url));
  return OpenPostgresStore::shards_to_read(options);
}

Result<std::unique_ptr<Store>> PostgresStore::open_to_read(const PostgresStoreOptions& options) {
  TRY(check_url(options.url));
  return OpenPostgresStore::open_to_read(options);
}

bool is_postgres_url(const std::string& url) noexcept {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

std::string shown_postgres_url(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> parsed(
      PQconninfoParse(url.c_str(), nullptr));
  std::map<std::string, std::string> parts;
  for (const PQconninfoOption* option = parsed.get(); option != nullptr && option->keyword;
       ++option) {
    if (option->val != nullptr) parts[option->keyword] = option->val;
  }
  std::string shown = "postgres://" + parts["host"];
  if (!parts["port"].empty()) shown += ":" + parts["port"];
  return shown + "/" + parts["dbname"];
}

}  // namespace detent
