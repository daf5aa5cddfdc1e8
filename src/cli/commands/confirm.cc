#include "cli/commands/confirm.h"

#include <string>

namespace detent::cli {

bool confirm(const Streams& streams, std::string_view question) {
  streams.err << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(streams.in, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace detent::cli
