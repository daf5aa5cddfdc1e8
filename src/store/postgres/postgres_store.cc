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

}  // namespace

Result<std::unique_ptr<Store>> PostgresStore::open(const PostgresStoreOptions& options,
                                                   Clock& clock) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> parsed(
      PQconninfoParse(options.url.c_str(), nullptr));
  if (!parsed || !is_postgres_url(options.url)) {
    return Error{ErrorCode::invalid_argument,
                 "open store: this is no address of a PostgreSQL database, as "
                 "postgres://user@host:5432/database is one",
                 "store"};
  }
  return OpenPostgresStore::open(options, clock);
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
