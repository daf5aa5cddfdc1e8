#include "server/open_engine.h"

#include <system_error>
#include <utility>

#include "base/log/log.h"
#include "base/rng.h"
#include "server/memory_plan.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::server {

Result<OpenEngine> open_engine(const cli::ServeOptions& options, Clock& clock) {
  const MemoryPlan memory = plan_memory(options.memory_bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                   RocksDbStore::open({.path = options.data.string(),
                                       .cache_bytes = memory.cache_bytes,
                                       .write_buffer_bytes = memory.write_buffer_bytes,
                                       .settle_tasks = memory.settle_tasks,
                                       .settle_bytes = memory.settle_bytes}));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   Engine::open(*store, clock,
                                {.window = options.window,
                                 .max_loaded = memory.max_loaded,
                                 .sync_interval = options.sync_interval,
                                 .seed = random_seed()}));
  return OpenEngine{.store = std::move(store), .engine = std::move(engine)};
}

Result<std::unique_ptr<Store>> open_data(const std::filesystem::path& data) {
  std::error_code error;
  if (!std::filesystem::is_directory(data, error) || std::filesystem::is_empty(data, error)) {
    return Error{ErrorCode::not_found, "there is no data in " + data.string(), "data"};
  }
  return RocksDbStore::open({.path = data.string()});
}

EngineEvents log_engine_events(UniqueFunction<Result<OpenEngine>()> reopen) {
  return {.on_stopped =
              [](const Error& error) {
                log_error("the store failed; nothing is accepted until it is open again",
                          {{"cause", error.message}});
              },
          .on_reopen_failed =
              [](const Error& error) {
                log_warning("the store cannot be opened again yet", {{"cause", error.message}});
              },
          .on_reopened = [] { log_info("the store is open again"); },
          .reopen = std::move(reopen)};
}

}  // namespace detent::server
