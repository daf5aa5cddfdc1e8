// Makes clients for tests. They do not repeat calls, because a test must see each failure.
#pragma once

#include <chrono>
#include <string>

#include "client/client_impl.h"
#include "protocol/json/stats_codec.h"

namespace detent::test {

inline Client client_of(const std::string& url,
                        std::chrono::milliseconds timeout = std::chrono::seconds{30}) {
  return make_client_without_repeats(url, {.timeout = timeout}).value();
}

/// The statistics of the client's server.
inline Result<json::ServerStats> stats_of(Client& client) {
  ASSIGN_OR_RETURN(const std::string answer, to_result(client.stats()));
  return json::parse_stats(answer);
}

}  // namespace detent::test
