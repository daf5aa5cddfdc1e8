// The page of figures of an engine that may hang or end.
//
// Figures matter most when something is wrong: an engine that waits for a database that does not
// answer gives none. So the page it gave last is kept; who waits for longer than a look or two gets
// that, and when the engine has ended its last page stands for it.
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

  /// Gives the next page; or the one before, when it was the last, or the engine is late. True: the
  /// engine is to be asked, and note() to be told its page.
  bool wait(Take take) DETENT_EXCLUDES(mutex_);
  /// Gives a page to all who wait.
  void note(std::string page) { note(std::move(page), Kind::one); }
  /// Likewise; there will be no other.
  void note_last(std::string page) { note(std::move(page), Kind::last); }
  /// An engine that was asked before the last look and has not answered since is late: gives the
  /// page before to those who wait. To be called again and again.
  void look() DETENT_EXCLUDES(mutex_);
  /// Empty when there has been none.
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
