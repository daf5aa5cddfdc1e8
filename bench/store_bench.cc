// store_bench: how fast the RocksDB store accepts, reads back, finds and removes tasks.
//
//     store_bench [--tasks 2m] [--batch N] [--folder DIR] [--csv FILE]
//
// Varies the batch size, unless one is given: every write is synced, so small batches show the disk
// and large ones the processor. The tasks are those of a busy server: ids rise, due times are
// uniform in the next 30 days, 100 bytes of random payload (about 130 bytes a record). The baseline
// is the disk itself: the same records appended to a file, with one fdatasync a batch. Figures are
// thousands of tasks a second of wall time; "CPU" is microseconds of the process's threads a task
// accepted, settles and compactions up to the end of the last write included. "Disk" is bytes of
// the data folder a task, once closed and opened again; "fresh" and "worn" are milliseconds for the
// first page of the due order before and after five sixths of the tasks, at its front, have ended;
// "RSS" the most memory that the process had so far.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "store/record_format.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::bench {
namespace {

constexpr std::int64_t kStartMs = 1'700'000'000'000;
constexpr std::uint64_t kMonthMs = std::uint64_t{30} * 24 * 3'600'000;

StoredTask sample_task(TaskId id, Rng& rng) {
  Task task;
  task.id = id;
  task.queue = "orders";
  task.payload.data.resize(100);
  for (char& byte : task.payload.data) byte = static_cast<char>(rng.below(256));
  task.created_at = WallTime{std::chrono::milliseconds{kStartMs}};
  task.due_at = task.created_at + std::chrono::milliseconds{rng.below(kMonthMs)};
  Place place = begin_of(Lane::due);
  place.at = task.due_at;
  place.id = id;
  return {place, std::move(task)};
}

/// The `number`th batch, the same in every run.
WriteBatch sample_batch(std::size_t number, std::size_t batch_tasks) {
  Rng rng(number);
  TaskId id{(number * batch_tasks) << TaskId::kShardBits};
  WriteBatch batch;
  batch.puts.reserve(batch_tasks);
  for (std::size_t i = 0; i < batch_tasks; ++i) {
    id = id.next();
    batch.puts.push_back({.from = std::nullopt, .to = sample_task(id, rng)});
    const Task& task = batch.puts.back().to.task;
    batch.due_counts.push_back({due_bin_of(task.due_at, task.created_at), 1});
  }
  QueueRecord& queue = batch.queues.emplace_back();
  queue.queue = "orders";
  queue.number = 1;
  queue.waiting = (number + 1) * batch_tasks;
  return batch;
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

double append_to_file(const std::string& path, std::size_t batches, std::size_t batch_tasks) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  DETENT_CHECK(file >= 0);
  double seconds = 0;
  std::string bytes;
  for (std::size_t n = 0; n < batches; ++n) {
    const WriteBatch batch = sample_batch(n, batch_tasks);
    seconds += measure([&] {
      bytes.clear();
      for (const WriteBatch::Put& put : batch.puts) bytes += encode_record(put.to.task);
      DETENT_CHECK(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
      DETENT_CHECK(::fdatasync(file) == 0);
    });
  }
  ::close(file);
  return seconds;
}

std::vector<Place> page_through(Store& store) {
  std::vector<Place> places;
  Place after = begin_of(Lane::due);
  for (bool more = true; more;) {
    const Result<TaskPage> page = store.read(after, end_of(Lane::due), 1'000);
    DETENT_CHECK(page.has_value());
    DETENT_CHECK(page->damaged.empty());
    more = page->read_to.has_value();
    for (const StoredTask& stored : page->tasks) places.push_back(stored.place);
    if (!places.empty()) after = places.back();
  }
  return places;
}

void read_by_place(Store& store, const std::vector<Place>& places) {
  for (std::size_t i = 0; i < places.size(); i += 1'000) {
    const std::size_t count = std::min<std::size_t>(1'000, places.size() - i);
    const auto tasks = store.read_at(std::span(places).subspan(i, count));
    DETENT_CHECK(tasks.has_value());
    for (const Result<Task>& task : *tasks) DETENT_CHECK(task.has_value());
  }
}

void find_by_id(Store& store, const std::vector<Place>& places) {
  for (const Place& place : places) DETENT_CHECK(store.find(place.id).value().has_value());
}

void remove_all(Store& store, std::span<const Place> places, std::size_t batch_tasks) {
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

double folder_bytes(const std::string& path) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

double most_memory_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1'024;
}

struct Figures {
  double disk = 0;  // seconds, as are all that say nothing else
  double accept = 0;
  double longest_write = 0;
  double accept_cpu = 0;
  double open = 0;
  double memory_mb = 0;
  double bytes = 0;
  double page = 0;
  double by_place = 0;
  double find = 0;
  double remove = 0;
  double fresh_front = 0;  // the first page of the due order
  double worn_front = 0;   // the same when five sixths of the tasks, at the front, have ended
  double empty = 0;
};

void accept_all(Store& store, std::size_t batches, std::size_t batch_tasks, Figures& figures) {
  for (std::size_t n = 0; n < batches; ++n) {
    const WriteBatch batch = sample_batch(n, batch_tasks);
    const double cpu_before = cpu_seconds();
    const double seconds =
        measure([&] { DETENT_CHECK(store.write(batch, Durability::synced).has_value()); });
    figures.accept_cpu += cpu_seconds() - cpu_before;
    figures.accept += seconds;
    figures.longest_write = std::max(figures.longest_write, seconds);
  }
}

Figures run(const std::string& folder, std::size_t batches, std::size_t batch_tasks) {
  Figures figures;
  figures.disk = append_to_file(folder + "/baseline", batches, batch_tasks);
  std::filesystem::remove(folder + "/baseline");
  const std::string data = folder + "/data";
  auto store = open_store(data);
  accept_all(*store, batches, batch_tasks, figures);
  store.reset();
  figures.open = measure([&] { store = open_store(data); });
  figures.memory_mb = most_memory_mb();
  figures.bytes = folder_bytes(data);
  std::vector<Place> places;
  figures.page = measure([&] { places = page_through(*store); });
  DETENT_CHECK(places.size() == batches * batch_tasks);
  figures.by_place = measure([&] { read_by_place(*store, places); });
  figures.find = measure([&] { find_by_id(*store, places); });
  const auto read_front = [&store] {
    DETENT_CHECK(!store->read(begin_of(Lane::due), end_of(Lane::due), 1'000)->tasks.empty());
  };
  figures.fresh_front = measure(read_front);
  const auto front = std::span(places).first(places.size() * 5 / 6);
  figures.remove = measure([&] { remove_all(*store, front, batch_tasks); });
  figures.worn_front = measure(read_front);
  figures.remove +=
      measure([&] { remove_all(*store, std::span(places).subspan(front.size()), batch_tasks); });
  figures.empty = measure([&] { DETENT_CHECK(page_through(*store).empty()); });
  return figures;
}

void print(const Figures& figures, std::size_t batch_tasks, double count, std::FILE* csv) {
  const auto rate = [count](double seconds) { return count / seconds / 1'000; };
  const double cpu = figures.accept_cpu / count * 1e6;
  std::printf(
      "%6zu %8.0f %8.1f %8.1f %8.1f %6.2f %7.1f %6.0f %6.1f %8.1f %8.1f %8.1f %8.1f %6.2f %6.2f "
      "%8.2f\n",
      batch_tasks, count / 1'000, rate(figures.disk), rate(figures.accept),
      figures.longest_write * 1e3, cpu, figures.open * 1e3, figures.memory_mb,
      figures.bytes / count, rate(figures.page), rate(figures.by_place), rate(figures.find),
      rate(figures.remove), figures.fresh_front * 1e3, figures.worn_front * 1e3,
      figures.empty * 1e3);
  if (csv == nullptr) return;
  std::fprintf(csv,
               "%zu,%.0f,%.2f,%.2f,%.2f,%.3f,%.2f,%.0f,%.1f,%.2f,%.2f,%.2f,%.2f,%.3f,%.3f,"
               "%.3f\n",
               batch_tasks, count, rate(figures.disk), rate(figures.accept),
               figures.longest_write * 1e3, cpu, figures.open * 1e3, figures.memory_mb,
               figures.bytes / count, rate(figures.page), rate(figures.by_place),
               rate(figures.find), rate(figures.remove), figures.fresh_front * 1e3,
               figures.worn_front * 1e3, figures.empty * 1e3);
}

int main(const std::vector<std::string>& arguments) {
  std::uint32_t tasks = 2'000'000;
  std::uint32_t batch = 0;
  std::filesystem::path parent = std::filesystem::temp_directory_path();
  std::filesystem::path csv_file;
  const bool understood = read_arguments(arguments, {},
                                         {{"--tasks", into(tasks)},
                                          {"--batch", repetitions_into(batch)},
                                          {"--folder", into(parent)},
                                          {"--csv", into(csv_file)}});
  if (!understood) {
    std::fputs("usage: store_bench [--tasks 2m] [--batch TASKS] [--folder FOLDER] [--csv FILE]\n",
               stderr);
    return 2;
  }
  std::vector<std::uint32_t> batch_sizes{1, 256, 1'000};
  if (batch != 0) batch_sizes = {batch};
  std::FILE* const csv = csv_file.empty() ? nullptr : std::fopen(csv_file.c_str(), "w");
  if (csv != nullptr) {
    std::fputs("batch,tasks,disk_k,accept_k,longest_ms,cpu_us,open_ms,rss_mb,disk_b,page_k,", csv);
    std::fputs("by_place_k,find_k,remove_k,fresh_front_ms,worn_front_ms,empty_page_ms\n", csv);
  }
  std::printf(
      "thousands of tasks a second; longest write, open and empty page in milliseconds\n"
      " batch    tasks     disk   accept  longest CPU µs    open RSS MB disk B     page    by at"
      "     find   remove  fresh   worn    empty\n");
  for (const std::size_t batch_tasks : batch_sizes) {
    std::string folder = parent / "detent-bench-XXXXXX";
    DETENT_CHECK(::mkdtemp(folder.data()) != nullptr);
    // One sync a task: a hundredth of the tasks takes as long.
    const std::size_t count = batch_tasks == 1 ? tasks / 100 : tasks;
    const std::size_t batches = std::max<std::size_t>(1, count / batch_tasks);
    print(run(folder, batches, batch_tasks), batch_tasks,
          static_cast<double>(batches * batch_tasks), csv);
    std::filesystem::remove_all(folder);
  }
  if (csv != nullptr) std::fclose(csv);
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) { return detent::bench::main({argv + 1, argv + argc}); }
