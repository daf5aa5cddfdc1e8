// A sink of spans for tests, which keeps them.
#pragma once

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tracing/span.h"

namespace detent {

/// The spans of a KeptSpans, which a tracer owns. Thread-safe.
class SpanList {
 public:
  void add(Span span) {
    const MutexLock lock(mutex_);
    spans_.push_back(std::move(span));
  }
  /// Removes all spans and returns them.
  std::vector<Span> take() {
    const MutexLock lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Span> spans_ DETENT_GUARDED_BY(mutex_);
};

class KeptSpans final : public SpanSink {
 public:
  /// `list` must outlive it.
  explicit KeptSpans(SpanList& list) : list_(list) {}
  void add(Span span) override { list_.add(std::move(span)); }
  SpanCounts counts() const override { return {}; }

 private:
  SpanList& list_;
};

}  // namespace detent
