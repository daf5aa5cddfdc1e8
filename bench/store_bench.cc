// store_bench: how fast the RocksDB store accepts, reads back, finds and removes tasks.
//
//     store_bench [--tasks 512k] [--folder DIR] [--csv FILE]
//
// Varies the batch size: every write is synced, so small batches show the disk and large ones the
// processor. The tasks are those of a busy server: ids rise, due times are uniform in the next
// hour, 100 bytes of random payload (about 130 bytes a record). The baseline is the disk itself:
// the same records appended to a file, with one fdatasync a batch. Figures are thousands of tasks a
// second of wall time; "CPU" is microseconds of the process's threads a task accepted, compactions
// included.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "store/record_format.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::bench {
namespace {

constexpr std::int64_t kStartMs = 1'700'000'000'000;

StoredTask sample_task(TaskId id, Rng& rng) {
  Task task;
  task.id = id;
  task.queue = "orders";
  task.payload.data.resize(100);
  for (char& byte : task.payload.data) byte = static_cast<char>(rng.below(256));
  task.created_at = WallTime{std::chrono::milliseconds{kStartMs}};
  task.due_at = task.created_at + std::chrono::milliseconds{rng.below(3'600'000)};
  return {{task.due_at, id}, std::move(task)};
}

std::vector<WriteBatch> sample_batches(std::size_t tasks, std::size_t batch_tasks) {
  Rng rng(42);
  TaskId id;
  std::vector<WriteBatch> batches;
  for (std::size_t done = 0; done < tasks; done += batch_tasks) {
    WriteBatch& batch = batches.emplace_back();
    for (std::size_t i = 0; i < batch_tasks; ++i) {
      id = id.next();
      batch.puts.push_back({.from = std::nullopt, .to = sample_task(id, rng)});
    }
    batch.counts.push_back({.queue = "orders", .waiting = done + batch_tasks, .dead = 0});
  }
  return batches;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Wall seconds that `work` takes.
template <class Work>
double measure(Work work) {
  const SystemClock clock;
  const MonotonicTime begin = clock.now();
  work();
  return std::chrono::duration<double>(clock.now() - begin).count();
}

double append_to_file(const std::string& path, const std::vector<WriteBatch>& batches) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  DETENT_CHECK(file >= 0);
  const double seconds = measure([&] {
    std::string bytes;
    for (const WriteBatch& batch : batches) {
      bytes.clear();
      for (const WriteBatch::Put& put : batch.puts) bytes += encode_record(put.to.task);
      DETENT_CHECK(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
      DETENT_CHECK(::fdatasync(file) == 0);
    }
  });
  ::close(file);
  return seconds;
}

std::vector<DueKey> page_through(Store& store) {
  std::vector<DueKey> places;
  DueKey after = kFirstDueKey;
  for (bool more = true; more;) {
    const Result<DuePage> page = store.read_due(after, kNeverDue, 1'000);
    DETENT_CHECK(page.has_value());
    DETENT_CHECK(page->damaged.empty());
    more = page->more;
    for (const StoredTask& stored : page->tasks) places.push_back(stored.place);
    if (!places.empty()) after = places.back();
  }
  return places;
}

void read_by_place(Store& store, const std::vector<DueKey>& places) {
  for (std::size_t i = 0; i < places.size(); i += 1'000) {
    const std::size_t count = std::min<std::size_t>(1'000, places.size() - i);
    const auto tasks = store.read_at(std::span(places).subspan(i, count));
    DETENT_CHECK(tasks.has_value());
    for (const Result<Task>& task : *tasks) DETENT_CHECK(task.has_value());
  }
}

void find_by_id(Store& store, const std::vector<DueKey>& places) {
  for (const DueKey place : places) DETENT_CHECK(store.find(place.id).value().has_value());
}

void remove_all(Store& store, const std::vector<DueKey>& places, std::size_t batch_tasks) {
  for (std::size_t i = 0; i < places.size(); i += batch_tasks) {
    WriteBatch batch;
    const std::size_t end = std::min(i + batch_tasks, places.size());
    for (std::size_t n = i; n < end; ++n) batch.erases.push_back(places[n]);
    DETENT_CHECK(store.write(batch, Durability::synced).has_value());
  }
}

std::unique_ptr<Store> open_store(const std::string& path) {
  Result<std::unique_ptr<Store>> store = RocksDbStore::open({.path = path});
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    std::exit(1);
  }
  return *std::move(store);
}

void run(const std::string& folder, std::size_t tasks, std::size_t batch_tasks, std::FILE* csv) {
  const std::vector<WriteBatch> batches = sample_batches(tasks, batch_tasks);
  const auto count = static_cast<double>(batches.size() * batch_tasks);
  const auto rate = [count](double seconds) { return count / seconds / 1'000; };
  const double disk = append_to_file(folder + "/baseline", batches);
  auto store = open_store(folder + "/data");
  const double cpu_before = cpu_seconds();
  const double accept = measure([&] {
    for (const WriteBatch& batch : batches) {
      DETENT_CHECK(store->write(batch, Durability::synced).has_value());
    }
  });
  const double cpu = cpu_seconds() - cpu_before;
  store.reset();
  const double open = measure([&] { store = open_store(folder + "/data"); });
  std::vector<DueKey> places;
  const double page = measure([&] { places = page_through(*store); });
  DETENT_CHECK(places.size() == batches.size() * batch_tasks);
  const double by_place = measure([&] { read_by_place(*store, places); });
  const double find = measure([&] { find_by_id(*store, places); });
  const double remove = measure([&] { remove_all(*store, places, batch_tasks); });
  const double empty = measure([&] { DETENT_CHECK(page_through(*store).empty()); });
  std::printf("%6zu %8.0f %9.1f %9.1f %8.2f %8.1f %8.1f %8.1f %8.1f %9.1f %9.2f\n", batch_tasks,
              count / 1'000, rate(disk), rate(accept), cpu / count * 1e6, open * 1e3, rate(page),
              rate(by_place), rate(find), rate(remove), empty * 1e3);
  if (csv == nullptr) return;
  std::fprintf(csv, "%zu,%.0f,%.2f,%.2f,%.3f,%.2f,%.2f,%.2f,%.2f,%.2f,%.3f\n", batch_tasks, count,
               rate(disk), rate(accept), cpu / count * 1e6, open * 1e3, rate(page), rate(by_place),
               rate(find), rate(remove), empty * 1e3);
}

/// "512k" → 512 000.
std::size_t parse_count(std::string_view text) {
  char* end = nullptr;
  const std::string copy(text);
  const std::size_t number = std::strtoull(copy.c_str(), &end, 10);
  return number * (*end == 'k' ? 1'000u : *end == 'm' ? 1'000'000u : 1u);
}

int main(int argc, char** argv) {
  std::size_t tasks = 512'000;
  std::string parent = std::filesystem::temp_directory_path();
  std::FILE* csv = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--tasks") tasks = parse_count(argv[i + 1]);
    if (std::string_view(argv[i]) == "--folder") parent = argv[i + 1];
    if (std::string_view(argv[i]) == "--csv") csv = std::fopen(argv[i + 1], "w");
  }
  if (csv != nullptr) {
    std::fputs("batch,tasks,disk_k,accept_k,cpu_us,open_ms,page_k,by_place_k,find_k,remove_k,",
               csv);
    std::fputs("empty_page_ms\n", csv);
  }
  std::printf(
      "thousands of tasks a second; open and empty page in milliseconds\n"
      " batch   tasks      disk    accept  CPU µs     open     page    by at     find"
      "    remove     empty\n");
  for (const std::size_t batch_tasks : {std::size_t{1}, std::size_t{256}, std::size_t{1'000}}) {
    std::string folder = parent + "/detent-bench-XXXXXX";
    DETENT_CHECK(::mkdtemp(folder.data()) != nullptr);
    // One sync a task: a hundredth of the tasks takes as long.
    run(folder, batch_tasks == 1 ? std::max<std::size_t>(1, tasks / 100) : tasks, batch_tasks, csv);
    std::filesystem::remove_all(folder);
  }
  if (csv != nullptr) std::fclose(csv);
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) { return detent::bench::main(argc, argv); }
