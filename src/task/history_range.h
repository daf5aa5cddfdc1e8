// The range of a history: a past span of time, and the length of its steps. The history of all
// queues (server/operate/stats_history.h) and of one queue (engine/queues/queue_histories.h) keep
// the same steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace detent {

struct HistoryRange {
  static constexpr std::chrono::seconds kFineStep{10};
  static constexpr std::chrono::hours kFineSpan{1};
  static constexpr std::chrono::minutes kCoarseStep{5};
  static constexpr std::chrono::hours kCoarseSpan{24};

  std::chrono::milliseconds span{0};
  std::chrono::milliseconds step{0};

  /// The range of a request, with defaults: a span of one hour, and the finest steps that are kept
  /// for the span. Errors: invalid_argument for a span above kCoarseSpan, or for a step that is
  /// longer than the span or not a multiple of the kept steps.
  static Result<HistoryRange> read(std::optional<std::chrono::milliseconds> given_span,
                                   std::optional<std::chrono::milliseconds> given_step) {
    const auto invalid = [](const std::string& message, const char* field) {
      return Error{ErrorCode::invalid_argument, message, field};
    };
    HistoryRange range{.span = given_span.value_or(kFineSpan)};
    if (range.span > kCoarseSpan) return invalid("span must be at most 24 h", "span");
    const std::string unit = std::to_string(range.unit() / std::chrono::seconds{1}) + " s";
    if (range.span < range.unit()) return invalid("span must be at least " + unit, "span");
    range.step = given_step.value_or(range.unit());
    const bool is_multiple = range.step % range.unit() == std::chrono::milliseconds{0};
    if (range.step < range.unit() || range.step > range.span || !is_multiple) {
      return invalid("step must be a multiple of " + unit + " for this span, and at most the span",
                     "step");
    }
    return range;
  }

  /// Whether the steps of kFineStep cover the span; otherwise those of kCoarseStep do.
  bool is_fine() const noexcept { return span <= kFineSpan; }
  /// The length of the kept steps that cover the span.
  std::chrono::milliseconds unit() const noexcept {
    return is_fine() ? std::chrono::milliseconds{kFineStep} : kCoarseStep;
  }
  /// The number of kept steps in a step of the range.
  std::size_t stride() const noexcept { return static_cast<std::size_t>(step / unit()); }
  /// The most steps of the range.
  std::size_t most() const noexcept { return static_cast<std::size_t>(span / step); }

  friend bool operator==(const HistoryRange&, const HistoryRange&) = default;
};

}  // namespace detent
