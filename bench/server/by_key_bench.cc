// by_key_bench: CPU time of the engine's thread for moving and cancelling tasks by key.
//
//     by_key_bench --folder FOLDER [--tasks 1m] [--changes 20k]
//
// If the folder does not exist, creates it with tasks. Each task has a key and 100 bytes of random
// payload, and is due in the next 30 days. Then moves some random tasks by key and cancels others,
// 1 000 per commit, as the server does. Figures are microseconds of the thread's CPU time per task.
// To count instructions, which do not depend on the load of the machine, use an existing folder.
// Each run changes the folder, so use a copy:
//
//     valgrind --tool=callgrind --separate-threads=yes by_key_bench --folder FOLDER
//
// The dumps are named "move" and "cancel". Divide them by the number of changes.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "engine/engine.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::by_key {

constexpr std::size_t kBatch = 1'000;
constexpr std::size_t kReadAhead = 256;  // as in server/routes/routes_batch.cc
constexpr std::uint64_t kMonthMs = std::uint64_t{30} * 24 * 3'600'000;

double cpu_microseconds() {
  timespec time{};
  DETENT_CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void fill(Engine& engine, std::size_t tasks) {
  Rng rng(1);
  for (std::size_t n = 0; n < tasks; ++n) {
    ScheduleRequest request{.queue = "orders", .payload = {}, .rules = {}};
    request.payload.data.resize(100);
    for (char& byte : request.payload.data) byte = static_cast<char>(rng.below(256));
    request.payload.kind = Payload::Kind::bytes;
    request.key = "key-" + std::to_string(n);
    request.due = std::chrono::milliseconds{3'600'000 + rng.below(kMonthMs)};
    DETENT_CHECK(engine.schedule(std::move(request)).has_value());
    if (n % kBatch == kBatch - 1) DETENT_CHECK(engine.turn().has_value());
  }
  DETENT_CHECK(engine.turn().has_value());
}

/// `verb` is called with the id that each key stands for.
template <class Verb>
void change_all(Engine& engine, std::span<const std::string> keys, Verb verb) {
  for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const auto batch = keys.subspan(begin, std::min(kBatch, keys.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (i % kReadAhead == 0) {
        engine.read_ahead("orders", batch.subspan(i, std::min(kReadAhead, batch.size() - i)));
      }
      verb(engine.id_of_key("orders", batch[i]).value());
    }
    DETENT_CHECK(engine.turn().has_value());
  }
}

void move_all(Engine& engine, std::span<const std::string> keys) {
  change_all(engine, keys, [&engine](TaskId id) {
    DETENT_CHECK(engine.move(id, std::chrono::hours{2}).has_value());
  });
}

void cancel_all(Engine& engine, std::span<const std::string> keys) {
  change_all(engine, keys, [&engine](TaskId id) { DETENT_CHECK(engine.cancel(id).has_value()); });
}

template <class Work>
void measure(const char* what, std::size_t count, Work work) {
  CALLGRIND_ZERO_STATS;
  const double begin = cpu_microseconds();
  work();
  const double took = cpu_microseconds() - begin;
  CALLGRIND_DUMP_STATS_AT(what);
  std::printf("%-10s %8.2f us\n", what, took / static_cast<double>(count));
}

int main(const std::vector<std::string>& arguments) {
  std::filesystem::path folder;
  std::uint32_t tasks = 1'000'000;
  std::uint32_t changes = 20'000;
  const bool understood = bench::read_arguments(arguments, {},
                                                {{"--folder", bench::into(folder)},
                                                 {"--tasks", bench::into(tasks)},
                                                 {"--changes", bench::into(changes)}});
  if (!understood || folder.empty()) {
    std::fputs("usage: by_key_bench --folder FOLDER [--tasks 1m] [--changes 20k]\n", stderr);
    return 2;
  }
  const bool is_new = !std::filesystem::exists(folder);
  SystemClock clock;
  const auto store = RocksDbStore::open({.path = folder.string(), .settle_inline = true}).value();
  const auto engine = Engine::open(*store, clock, {}).value();
  if (is_new) fill(*engine, tasks);
  Rng rng(2);
  std::vector<std::string> keys;
  const std::size_t step = std::max<std::size_t>(tasks / (2 * std::size_t{changes} + 1), 1);
  while (keys.size() < 2 * std::size_t{changes}) {
    keys.push_back("key-" + std::to_string(keys.size() * step + rng.next() % step));
  }
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[rng.next() % i]);
  const std::span all(keys);
  measure("move", changes, [&] { move_all(*engine, all.first(changes)); });
  measure("cancel", changes, [&] { cancel_all(*engine, all.subspan(changes)); });
  return 0;
}

}  // namespace detent::by_key

int main(int argc, char** argv) { return detent::by_key::main({argv + 1, argv + argc}); }
