// The /metrics page of an engine that can hang or end.
//
// Figures matter most during an outage, but an engine that waits for a database gives no figures.
// The last page is therefore kept. A scraper that waits longer than one or two looks gets this
// page. After the engine has ended, its last page stays valid.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/unique_function.h"

namespace detent::server {

/// Thread-safe.
class MetricsPage {
 public:
  /// Runs on any thread, once.
  using Take = UniqueFunction<void(std::string)>;

  /// Gives the next page. Gives the previous page if it was the last page, or if the engine is
  /// late. Returns true if the caller must ask the engine and then call note() with its page.
  bool wait(Take take) DETENT_EXCLUDES(mutex_);
  /// Gives a page to all waiting scrapers.
  void note(std::string page) { note(std::move(page), Kind::one); }
  /// As note(), for the last page of an engine.
  void note_last(std::string page) { note(std::move(page), Kind::last); }
  /// If the engine was asked before the previous look and has not answered, it is late: the waiting
  /// scrapers get the previous page. Call this periodically.
  void look() DETENT_EXCLUDES(mutex_);
  /// Returns "" if there was no page yet.
  std::string last() const DETENT_EXCLUDES(mutex_);

 private:
  enum class Kind : std::uint8_t { one, last };
  void note(std::string page, Kind kind) DETENT_EXCLUDES(mutex_);
  bool is_late() const DETENT_REQUIRES(mutex_) { return looks_ >= 2; }

  mutable Mutex mutex_;
  std::string last_ DETENT_GUARDED_BY(mutex_);
  bool is_final_ DETENT_GUARDED_BY(mutex_) = false;
  bool is_asked_ DETENT_GUARDED_BY(mutex_) = false;
  int looks_ DETENT_GUARDED_BY(mutex_) = 0;  // since it was asked
  std::vector<Take> waiting_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server
