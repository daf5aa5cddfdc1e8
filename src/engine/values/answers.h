// Callbacks that wait for the next commit and get its result, first come, first served. A client
// must not learn the answer of a verb before the change is durable. Thread-compatible.
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/check.h"
#include "detent/unique_function.h"

namespace detent {

class Answers {
 public:
  using Committed = UniqueFunction<void(const Result<void>&)>;

  void after_commit(Committed committed) {
    DETENT_CHECK(committed);
    waiting_.push_back(std::move(committed));
  }
  /// After the next commit, calls `done` with `answer`, or with the error of the commit.
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
  /// The commit is over: runs the callbacks. Callbacks that they add wait for the next commit.
  /// `after_each` runs after each callback.
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
