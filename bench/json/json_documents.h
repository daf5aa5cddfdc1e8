// The documents of json_bench, and documents that show what a reader checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/json/json_contender.h"

namespace detent::bench {

struct JsonDocument {
  std::string name;
  Shape shape;
  std::uint32_t item_count;
  std::string text;  // with kPaddingBytes of capacity behind it
};

/// small, full, batch, large, lease.
std::vector<JsonDocument> measured_documents();

/// A request. `name` says what is special about it.
struct CheckedRequest {
  std::string name;
  std::string text;
  std::string payload;  // in `text`; empty in refused requests
};
/// Requests that our reader refuses.
std::vector<CheckedRequest> refused_requests();
/// Requests with unusual payloads, which our reader accepts and keeps byte for byte.
std::vector<CheckedRequest> kept_requests();

}  // namespace detent::bench
