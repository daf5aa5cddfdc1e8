#include "examples/orders/loader.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace orders {
namespace {

constexpr std::size_t kBatch = 1'000;

}  // namespace

detent::ClientResult<void> Loader::load_batch(detent::Client& client, detent::WallTime now) {
  std::vector<detent::client::NewTask> batch;
  for (std::size_t i = next_; i < orders_.size() && batch.size() < kBatch; ++i) {
    if (start_ + orders_[i].created > now) break;
    const detent::WallTime due_at = start_ + orders_[i].pay_by;
    ledger_.offered(i, due_at);
    // The payload is the number of the order in the ledger. A real shop would send its own id.
    batch.push_back(
        {.queue = orders_[i].queue, .payload = {.data = std::to_string(i)}, .due = due_at});
  }
  const auto results = client.schedule_many(batch);
  if (!results) return results.error();
  for (const auto& result : *results) {
    if (!result) return result.error();
    ledger_.loaded(next_, result->id);
    ++next_;
  }
  return {};
}

Progress::Progress(const char* what, std::size_t total)
    : what_(what), total_(total), is_terminal_(::isatty(STDOUT_FILENO) != 0) {}

void Progress::show(std::size_t done) {
  const std::size_t tenths = total_ == 0 ? 10 : done * 10 / total_;
  if (is_terminal_) {
    const std::string bar = std::string(tenths, '#') + std::string(10 - tenths, '.');
    std::printf("\r%s %zu of %zu [%s]%s", what_, done, total_, bar.c_str(),
                done == total_ ? "\n" : "");
  } else if (tenths > shown_tenths_) {
    std::printf("%s %zu of %zu\n", what_, done, total_);
  }
  shown_tenths_ = tenths;
  std::fflush(stdout);
}

}  // namespace orders
