// How a part of the server asks for its figures, without knowing whether they are those of one
// engine or of a whole cluster.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "detent/unique_function.h"
#include "engine/thread/engine_thread.h"
#include "engine/values/engine_stats.h"

namespace detent::server {

/// Requests the figures. They are given once, on any thread; no value if they could not be
/// obtained. Returns false if the figures cannot be requested now; then the function is never
/// called.
using AskFigures = std::function<bool(UniqueFunction<void(std::optional<EngineStats>)>)>;

/// Of one engine, which must outlive it.
inline AskFigures figures_of(EngineThread& engine) {
  return [&engine](UniqueFunction<void(std::optional<EngineStats>)> take) {
    return engine.post(
        [take = std::move(take)](const Engine& asked) mutable { take(asked.stats(0)); });
  };
}

}  // namespace detent::server
