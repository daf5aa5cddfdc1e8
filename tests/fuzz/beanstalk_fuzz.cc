// libFuzzer's way into the beanstalk parser: the first byte says into how large pieces the rest is
// cut, and what is read in pieces must be what is read whole, within the limits of a command.
//
//     tests/fuzz/detent_beanstalk_fuzz -max_len=2048 CORPUS
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detent/check.h"
#include "protocol/beanstalk/command_parser.h"

namespace {

using detent::beanstalk::Command;
using detent::beanstalk::CommandParser;
using detent::beanstalk::Input;

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

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<Input> whole = parse(bytes, std::max<std::size_t>(bytes.size(), 1));
  DETENT_CHECK(parse(bytes, std::size_t{data[0]} + 1) == whole);
  for (const Input& input : whole) {
    const auto* const command = std::get_if<Command>(&input);
    DETENT_CHECK(command == nullptr || command->body.size() <= kMaxBody);
  }
  return 0;
}
