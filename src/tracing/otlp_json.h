// Spans as JSON of OTLP, the protocol of OpenTelemetry. Names of attributes follow the semantic
// conventions for messaging.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tracing/span.h"

namespace detent {

/// The server in whose name spans are sent.
struct TracedService {
  std::string version;
  std::string instance = {};  // the name of the node; empty without a cluster
};

/// The body of POST /v1/traces: an ExportTraceServiceRequest. Pure.
std::string render_otlp(std::span<const Span> spans, const TracedService& service);

}  // namespace detent
