#include "task/forecast.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

std::string refused_field(milliseconds span, std::size_t bins) {
  const Result<void> result = validate_forecast(span, bins);
  if (result) return "";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  return result.error().field;
}

TEST(Forecast, SpansAMinuteTo136Years) {
  EXPECT_EQ(refused_field(milliseconds{60'000}, 1), "");
  EXPECT_EQ(refused_field(milliseconds{59'999}, 1), "span");
  EXPECT_EQ(refused_field(milliseconds{0}, 1), "span");
  EXPECT_EQ(refused_field(milliseconds{-60'000}, 1), "span");
  EXPECT_EQ(refused_field(milliseconds::min(), 1), "span");
  EXPECT_EQ(refused_field(kMaxForecastSpan, 1), "");
  EXPECT_EQ(refused_field(kMaxForecastSpan + milliseconds{1}, 1), "span");
  EXPECT_EQ(refused_field(milliseconds::max(), 1), "span");
}

TEST(Forecast, HasOneTo10000Bins) {
  EXPECT_EQ(refused_field(minutes{1}, 0), "bins");
  EXPECT_EQ(refused_field(minutes{1}, 10'000), "");
  EXPECT_EQ(refused_field(minutes{1}, 10'001), "bins");
  EXPECT_EQ(refused_field(minutes{1}, ~std::size_t{0}), "bins");
}

TEST(Forecast, BinsAreWholeMinutesWideAndWideEnoughForTheSpan) {
  EXPECT_EQ(forecast_bin_width(minutes{60}, 60), minutes{1});
  EXPECT_EQ(forecast_bin_width(minutes{60}, 61), minutes{1});
  EXPECT_EQ(forecast_bin_width(minutes{60}, 59), minutes{2});
  EXPECT_EQ(forecast_bin_width(minutes{60} + milliseconds{1}, 60), minutes{2});
  EXPECT_EQ(forecast_bin_width(minutes{60}, 1), minutes{60});
  EXPECT_EQ(forecast_bin_width(minutes{1}, kMaxForecastBins), minutes{1});
  EXPECT_EQ(forecast_bin_width(kMaxForecastSpan, 1), std::chrono::ceil<minutes>(kMaxForecastSpan));
}

}  // namespace
}  // namespace detent
