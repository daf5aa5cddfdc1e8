// The options of `detent top`.
#pragma once

#include <chrono>

namespace detent::cli {

struct TopCommand {
  bool once = false;  // print one update, with averages since the start of the server
  std::chrono::milliseconds interval{1'000};
};

}  // namespace detent::cli
