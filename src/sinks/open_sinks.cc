#include "sinks/open_sinks.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "sinks/kafka_sink.h"
#include "sinks/nats_sink.h"
#include "sinks/redis_sink.h"

namespace detent {

Result<std::unique_ptr<Sink>> open_sink(const SinkAddress& address) {
  switch (address.kind) {
    case SinkAddress::Kind::kafka:
      return make_kafka_sink(address);
    case SinkAddress::Kind::nats:
      return make_nats_sink(address);
    case SinkAddress::Kind::redis:
      return make_redis_sink(address);
  }
  return Error{ErrorCode::internal, "no kind of sink", ""};
}

Result<Sinks> open_sinks(const std::filesystem::path& file) {
  if (file.empty()) return Sinks{};
  std::ifstream in(file);
  const std::string lines{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) {
    return Error{ErrorCode::unavailable, "read the sinks of " + file.string(), "sinks"};
  }
  auto addresses = parse_sink_lines(lines);
  if (!addresses) return with_context(file.string(), std::move(addresses).error());
  Sinks sinks;
  for (const auto& [name, address] : *addresses) {
    auto sink = open_sink(address);
    if (!sink) return with_context("sink " + name, std::move(sink).error());
    sinks.emplace(name, *std::move(sink));
  }
  return sinks;
}

}  // namespace detent
