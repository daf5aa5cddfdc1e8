// The sinks that an operator has named in a file.
#pragma once

#include <filesystem>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Begins to connect; that a broker is not there is no error. Errors: invalid_argument for an
/// address that is wrong.
Result<std::unique_ptr<Sink>> open_sink(const SinkAddress& address);

/// Of each line of the file its sink; none without a file. Errors: unavailable when it cannot be
/// read, too_large above 1 MB; invalid_argument, naming the line or the sink, for what is in it.
Result<Sinks> open_sinks(const std::filesystem::path& file);

}  // namespace detent
