// Parses the bytes of a connection as beanstalk commands. Reading in pieces must give the same
// commands as reading in one piece. No command may exceed its limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "detent/check.h"
#include "protocol/beanstalk/command_parser.h"
#include "tests/fuzz/fuzz_inputs.h"

namespace detent::fuzz {

namespace {

using beanstalk::Command;
using beanstalk::CommandParser;
using beanstalk::Input;

constexpr std::size_t kMaxBody = 64;

std::vector<Input> parse(std::string_view bytes, std::size_t piece) {
  CommandParser parser(kMaxBody);
  std::vector<Input> inputs;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    const std::size_t taken = parser.parse(part);
    DETENT_CHECK(taken > 0 && taken <= part.size());
    DETENT_CHECK(parser.is_complete() || taken == part.size());
    bytes.remove_prefix(taken);
    if (parser.is_complete()) inputs.push_back(parser.take());
  }
  return inputs;
}

}  // namespace

void beanstalk_commands(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = std::size_t{static_cast<std::uint8_t>(input.front())} + 1;
  const std::string_view bytes = input.substr(1);
  const std::vector<Input> whole = parse(bytes, std::max<std::size_t>(bytes.size(), 1));
  DETENT_CHECK(parse(bytes, piece) == whole);
  for (const Input& each : whole) {
    const auto* const command = std::get_if<Command>(&each);
    DETENT_CHECK(command == nullptr || command->body.size() <= kMaxBody);
  }
}

}  // namespace detent::fuzz
