// The engine of this program on the store it was asked for. Of src/server only open_engine.cc names
// a concrete store; all others know the interface.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "store/store.h"

namespace detent::server {

/// Opens what `options` asks for, and makes it where there is nothing yet. `clock` must outlive the
/// engine. Reads whatever recovery needs.
Result<OpenEngine> open_engine(const cli::ServeOptions& options, Clock& clock);

/// The store in a folder that a server has made. Errors: `not_found` where there is nothing, for
/// the folder would be made a data folder.
Result<std::unique_ptr<Store>> open_data(const std::filesystem::path& data);

/// Logs that the store failed and came back; `reopen` opens it again.
EngineEvents log_engine_events(UniqueFunction<Result<OpenEngine>()> reopen);

}  // namespace detent::server
