#include "task/forecast.h"

namespace detent {

using std::chrono::milliseconds;

Result<void> validate_forecast(milliseconds span, std::size_t bins) {
  if (span < kMinForecastSpan || span > kMaxForecastSpan) {
    return Error{ErrorCode::invalid_argument, "a forecast must span 1 minute to 136 years", "span"};
  }
  if (bins < 1 || bins > kMaxForecastBins) {
    return Error{ErrorCode::invalid_argument, "a forecast must have 1 to 10000 bins", "bins"};
  }
  return ok();
}

std::chrono::minutes forecast_bin_width(milliseconds span, std::size_t bins) noexcept {
  const milliseconds minutes_of_all = std::chrono::minutes{bins};  // one minute for each bin
  return std::chrono::minutes{(span + minutes_of_all - milliseconds{1}) / minutes_of_all};
}

}  // namespace detent
