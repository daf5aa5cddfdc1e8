// What waits for the next commit, to be told how it went: nobody learns what a verb answered before
// that is durable. In the order in which it came. Thread-compatible.
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/unique_function.h"

namespace detent {

class Answers {
 public:
  using Committed = UniqueFunction<void(const Result<void>&)>;

  void after_commit(Committed committed) { waiting_.push_back(std::move(committed)); }
  /// Gives `answer` to `done` then, or the commit's error in its place.
  template <class T>
  void answer(UniqueFunction<void(Result<T>)> done, Result<T> answer) {
    after_commit([done = std::move(done),
                  answer = std::move(answer)](const Result<void>& committed) mutable {
      if (!committed) {
        done(committed.error());
      } else {
        done(std::move(answer));
      }
    });
  }

  bool empty() const noexcept { return waiting_.empty(); }
  /// The commit is over. What this makes wait waits for the next. `after_each` runs after each.
  template <class AfterEach>
  void tell(const Result<void>& committed, AfterEach after_each) {
    for (Committed& one : std::exchange(waiting_, {})) {
      one(committed);
      after_each();
    }
  }

 private:
  std::vector<Committed> waiting_;
};

}  // namespace detent
