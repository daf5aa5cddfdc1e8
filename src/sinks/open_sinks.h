// The sinks that an operator has named in a file.
#pragma once

#include <filesystem>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Begins to connect; that a broker is not there is no error. Errors: invalid_argument for an
/// address that is wrong.
Result<std::unique_ptr<Sink>> open_sink(const SinkAddress& address);

/// Opens the sink of each line of the file; returns an empty map without a file. Errors:
/// unavailable if the file cannot be read; too_large above 1 MB; invalid_argument for its content,
/// with the line or the sink in the message.
Result<Sinks> open_sinks(const std::filesystem::path& file);

}  // namespace detent
