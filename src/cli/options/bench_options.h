// The options of `detent bench`.
#pragma once

#include <cstddef>
#include <string>

namespace detent::cli {

struct BenchCommand {
  std::string queue = "bench";
  std::size_t tasks = 10'000;
  std::size_t batch = 100;  // tasks per call
  std::size_t connections = 4;
  std::size_t payload_bytes = 100;
};

}  // namespace detent::cli
