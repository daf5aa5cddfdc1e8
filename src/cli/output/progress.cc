#include "cli/output/progress.h"

namespace detent::cli {

void Progress::at(std::uint64_t count) {
  if (shown_ == Shown::line_that_changes) {
    err_ << '\r' << what_ << ' ' << count << std::flush;
    is_on_line_ = true;
  } else if (count / kThingsPerLine > told_) {
    told_ = count / kThingsPerLine;
    err_ << what_ << ' ' << count << std::endl;
  }
}

void Progress::end() {
  constexpr const char* kClearLine = "\r\x1B[K";  // ECMA-48: EL
  if (is_on_line_) err_ << kClearLine << std::flush;
  is_on_line_ = false;
}

}  // namespace detent::cli
