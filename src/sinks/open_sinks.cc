#include "sinks/open_sinks.h"

#include <string>
#include <utility>

#include "base/read_file.h"
#include "sinks/kafka_sink.h"
#include "sinks/nats_sink.h"
#include "sinks/redis_sink.h"

namespace detent {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;

}  // namespace

Result<std::unique_ptr<Sink>> open_sink(const SinkAddress& address) {
  switch (address.kind) {
    case SinkAddress::Kind::kafka:
      return make_kafka_sink(address);
    case SinkAddress::Kind::nats:
      return make_nats_sink(address);
    case SinkAddress::Kind::redis:
      return make_redis_sink(address);
  }
  return Error{ErrorCode::internal, "unknown kind of sink", ""};
}

Result<Sinks> open_sinks(const std::filesystem::path& file) {
  if (file.empty()) return Sinks{};
  auto lines = read_file(file, kLargestFile);
  if (!lines) return with_context("--sinks", std::move(lines).error());
  auto addresses = parse_sink_lines(*lines);
  if (!addresses) return with_context("--sinks " + file.string(), std::move(addresses).error());
  Sinks sinks;
  for (const auto& [name, address] : *addresses) {
    auto sink = open_sink(address);
    if (!sink) return with_context("--sinks: sink " + name, std::move(sink).error());
    sinks.emplace(name, *std::move(sink));
  }
  return sinks;
}

}  // namespace detent
