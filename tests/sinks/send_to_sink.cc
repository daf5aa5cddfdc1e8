// Sends messages to one sink, without a server. The argument is the address of the sink. Each line
// of standard input is "COUNT SIZE": send this many messages with bodies of this many bytes. The
// ids of the messages continue after those of the previous line. The answer to a line has the
// numbers of messages that were "acknowledged", "refused" and "failed", and the last error.
//
// The program waits for every answer. A test that expects no answer kills it.
#include <iostream>
#include <string>

#include "base/mutex.h"
#include "sinks/open_sinks.h"

namespace {

using detent::Result;

/// Counts answers. Thread-safe.
class Answers {
 public:
  void note(const Result<void>& result) {
    const detent::MutexLock lock(mutex_);
    const bool is_down = !result && result.error().code == detent::ErrorCode::unavailable;
    ++(result ? acknowledged_ : is_down ? failed_ : refused_);
    if (!result) error_ = result.error().message;
    changed_.notify_all();
  }
  void await_and_print(int count) {
    const detent::MutexLock lock(mutex_);
    while (acknowledged_ + refused_ + failed_ < count) changed_.wait(mutex_);
    std::cout << "acknowledged " << acknowledged_ << " refused " << refused_ << " failed "
              << failed_ << ' ' << error_ << std::endl;
    acknowledged_ = refused_ = failed_ = 0;
    error_.clear();
  }

 private:
  detent::Mutex mutex_;
  detent::CondVar changed_;
  int acknowledged_ DETENT_GUARDED_BY(mutex_) = 0;
  int refused_ DETENT_GUARDED_BY(mutex_) = 0;
  int failed_ DETENT_GUARDED_BY(mutex_) = 0;
  std::string error_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace

int main(int argc, char** argv) {
  const auto address = detent::parse_sink_address(argc > 1 ? argv[1] : "");
  if (!address) {
    std::cerr << address.error().message << '\n';
    return 2;
  }
  Answers answers;
  const auto sink = detent::open_sink(*address);
  if (!sink) {
    std::cerr << sink.error().message << '\n';
    return 2;
  }
  int last = 0;
  int count = 0;
  for (std::size_t size = 0; std::cin >> count >> size;) {
    for (int i = 0; i < count; ++i) {
      (*sink)->send(
          {.id = std::to_string(++last),
           .body = std::string(size, 'x'),
           .fields = {{"a", "b c"}, {"Nats-Rollup", "all"}, {"id", "0"}, {"Payload", "no"}}},
          [&answers](const Result<void>& result) { answers.note(result); });
    }
    answers.await_and_print(count);
  }
}
