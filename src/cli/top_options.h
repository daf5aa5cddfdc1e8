// What `detent top` was asked for.
#pragma once

#include <chrono>

namespace detent::cli {

struct TopCommand {
  bool once = false;  // one look, with the averages since the server's start
  std::chrono::milliseconds interval{1'000};
};

}  // namespace detent::cli
