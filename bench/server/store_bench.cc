// store_bench: how fast the RocksDB store accepts, reads, finds and removes tasks.
//
//     store_bench [--tasks 2m] [--batch N] [--folder DIR] [--rest SECONDS] [--csv FILE]
//
// Without --batch, the batch size varies. Every write is synced, so small batches measure the disk
// and large batches measure the processor. Only the largest size uses all tasks; the size 256 uses
// a third, and the size 1 a thousandth. The tasks are those of a busy server: ids rise, due times
// are uniform in the next 30 days, and payloads are 100 random bytes (about 130 bytes per record).
// The baseline is the disk: the same records appended to a file, with one fdatasync per batch. The
// measures, in their order:
//
//  - disk, accept /s      tasks per second of wall time, for the baseline and for the store
//  - longest ms           the longest of these writes
//  - accept us            CPU time per accepted task, all threads of the process, with settles and
//                         compactions until the end of the last write
//  - open ms, memory MB   time to reopen the store, and the largest memory of the process so far
//  - disk B               size of the data folder per task, after that
//  - page, place, find /s   tasks per second: all in due order; half a million by place and by id
//  - fresh ms             the median of some pages in due order that were not read recently
//  - worn ms              the same for the first page after five sixths of the tasks, all tasks
//                         before the page, were removed. "worn of fresh" is the ratio.
//  - remove /s            removed tasks
//  - empty ms             the first page after all tasks were removed
//  - emptied %            size of the data folder then, compared with its size with all tasks. It
//                         is measured when the folder has not changed for SECONDS (5). No request
//                         asks RocksDB to compact, because the server does not ask either.
//  - restarted %          the same after the store was closed and opened again
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/arguments.h"
#include "bench/results.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "store/record_format.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::bench {
namespace {

constexpr std::int64_t kStartMs = 1'700'000'000'000;
constexpr std::uint64_t kMonthMs = std::uint64_t{30} * 24 * 3'600'000;
constexpr std::size_t kPage = 1'000;
constexpr std::size_t kLookups = 500'000;
// The number of measured pages, and the number of tasks between them.
constexpr std::size_t kFronts = 11;
constexpr std::size_t kFrontStep = 20'000;
constexpr std::uint32_t kLeastTasks = 10'000;
// The longest wait for a store that does not come to rest, in multiples of the rest time.
constexpr int kMostRests = 12;

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
    const Result<TaskPage> page = store.read(after, end_of(Lane::due), kPage);
    DETENT_CHECK(page.has_value());
    DETENT_CHECK(page->damaged.empty());
    more = page->read_to.has_value();
    for (const StoredTask& stored : page->tasks) places.push_back(stored.place);
    if (!places.empty()) after = places.back();
  }
  return places;
}

void read_by_place(Store& store, std::span<const Place> places) {
  for (std::size_t i = 0; i < places.size(); i += kPage) {
    const std::size_t count = std::min(kPage, places.size() - i);
    const auto tasks = store.read_at(places.subspan(i, count));
    DETENT_CHECK(tasks.has_value());
    for (const Result<Task>& task : *tasks) DETENT_CHECK(task.has_value());
  }
}

void find_by_id(Store& store, std::span<const Place> places) {
  for (const Place& place : places) DETENT_CHECK(store.find(place.id).value().has_value());
}

/// This number of places, spread evenly over all.
std::vector<Place> sample_of(const std::vector<Place>& places, std::size_t count) {
  std::vector<Place> sample;
  for (std::size_t i = 0; i < count; ++i) sample.push_back(places[i * places.size() / count]);
  return sample;
}

/// Seconds to read the page after a place.
double read_page(Store& store, const Place& after) {
  return measure([&] {
    const Result<TaskPage> page = store.read(after, end_of(Lane::due), kPage);
    DETENT_CHECK(page.has_value());
    DETENT_CHECK(!page->tasks.empty());
  });
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
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
    std::error_code gone;  // RocksDB may remove tables during the loop
    const std::uintmax_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    if (!gone) bytes += static_cast<double>(size);
  }
  return bytes;
}

double most_memory_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1'024;
}

/// Bytes of the folder after it has not changed for `rest`, so the background work of RocksDB is
/// done.
double bytes_at_rest(const std::string& path, MonotonicTime::duration rest) {
  SystemClock clock;
  Doorbell never;
  const MonotonicTime begin = clock.now();
  double bytes = folder_bytes(path);
  for (MonotonicTime since = begin; clock.now() - since < rest;) {
    if (clock.now() - begin > kMostRests * rest) break;
    clock.wait(never, clock.now() + rest / 10);
    const double now = folder_bytes(path);
    if (now != bytes) since = clock.now();
    bytes = now;
  }
  return bytes;
}

/// One store, from its first task to its last.
class Life {
 public:
  /// `add` gets each measure and its value.
  using Add = std::function<void(const char* measure, double value)>;

  Life(std::string folder, std::size_t batches, std::size_t batch_tasks,
       MonotonicTime::duration rest, Add add)
      : folder_(std::move(folder)),
        batches_(batches),
        batch_tasks_(batch_tasks),
        rest_(rest),
        add_(std::move(add)) {}

  void run() {
    add_rate("disk /s", append_to_file(folder_ + "/baseline", batches_, batch_tasks_));
    std::filesystem::remove(folder_ + "/baseline");
    store_ = open_store(data_);
    accept_all();
    store_.reset();
    add_("open ms", 1e3 * measure([this] { store_ = open_store(data_); }));
    add_("memory MB", most_memory_mb());
    full_bytes_ = folder_bytes(data_);
    add_("disk B", full_bytes_ / count());
    read_all();
    remove_all();
  }

 private:
  double count() const { return static_cast<double>(batches_ * batch_tasks_); }
  void add_rate(const char* measure, double seconds) { add_(measure, count() / seconds); }

  void accept_all() {
    double cpu = 0;
    double total = 0;
    double longest = 0;
    for (std::size_t n = 0; n < batches_; ++n) {
      const WriteBatch batch = sample_batch(n, batch_tasks_);
      const double cpu_before = cpu_seconds();
      const double seconds =
          measure([&] { DETENT_CHECK(store_->write(batch, Durability::synced).has_value()); });
      cpu += cpu_seconds() - cpu_before;
      total += seconds;
      longest = std::max(longest, seconds);
    }
    add_rate("accept /s", total);
    add_("longest ms", longest * 1e3);
    add_("accept us", cpu / count() * 1e6);
  }

  void read_all() {
    add_rate("page /s", measure([this] { places_ = page_through(*store_); }));
    DETENT_CHECK(places_.size() == batches_ * batch_tasks_);
    const std::size_t lookups = std::min(kLookups, places_.size());
    const auto first = std::span(places_).first(lookups);
    const auto rate = [lookups](double seconds) { return static_cast<double>(lookups) / seconds; };
    add_("place /s", rate(measure([&] { read_by_place(*store_, first); })));
    const std::vector<Place> some = sample_of(places_, lookups);
    add_("find /s", rate(measure([&] { find_by_id(*store_, some); })));
  }

  void remove_all() {
    // The places of the pages. They are before the last sixth of the tasks; the last page begins
    // directly there.
    const std::size_t most = places_.size() * 5 / 6;
    const std::size_t step = std::min(kFrontStep, most / kFronts);
    std::vector<double> fresh;
    for (std::size_t i = kFronts; i-- > 0;) {
      fresh.push_back(read_page(*store_, places_[most - i * step - 1]));
    }
    std::vector<double> worn;
    double seconds = 0;
    std::size_t removed = 0;
    for (std::size_t i = kFronts; i-- > 0;) {
      seconds += remove(removed, most - i * step);
      removed = most - i * step;
      worn.push_back(read_page(*store_, begin_of(Lane::due)));
    }
    seconds += remove(most, places_.size());
    add_("fresh ms", median(fresh) * 1e3);
    add_("worn ms", median(worn) * 1e3);
    add_("worn of fresh", median(worn) / median(fresh));
    add_rate("remove /s", seconds);
    add_("empty ms", 1e3 * measure([this] { DETENT_CHECK(page_through(*store_).empty()); }));
    add_("emptied %", 100 * bytes_at_rest(data_, rest_) / full_bytes_);
    store_.reset();
    store_ = open_store(data_);
    add_("restarted %", 100 * bytes_at_rest(data_, rest_) / full_bytes_);
  }

  /// The tasks at the places from `begin` to `end`. Returns seconds.
  double remove(std::size_t begin, std::size_t end) {
    return measure([&] {
      while (begin < end) {
        WriteBatch batch;
        for (std::size_t n = 0; n < batch_tasks_ && begin < end; ++n) {
          batch.erases.push_back(places_[begin++]);
        }
        DETENT_CHECK(store_->write(batch, Durability::synced).has_value());
      }
    });
  }

  const std::string folder_;
  const std::string data_ = folder_ + "/data";
  const std::size_t batches_;
  const std::size_t batch_tasks_;
  const MonotonicTime::duration rest_;
  const Add add_;
  std::unique_ptr<Store> store_;
  double full_bytes_ = 0;
  std::vector<Place> places_;  // in due order
};

/// The number of tasks for this batch size. With one sync per task, a thousandth of the tasks takes
/// as long.
std::size_t share_of(std::uint32_t tasks, std::size_t batch_tasks) {
  if (batch_tasks == 1) return tasks / 1'000;
  return batch_tasks < kPage ? tasks / 3 : tasks;
}

int main(const std::vector<std::string>& arguments) {
  std::uint32_t tasks = 6'000'000;
  std::uint32_t batch = 0;
  double rest_seconds = 5;
  std::filesystem::path parent = std::filesystem::temp_directory_path();
  std::string csv = "store_bench.csv";
  const bool understood = read_arguments(arguments, {},
                                         {{"--tasks", into(tasks)},
                                          {"--batch", repetitions_into(batch)},
                                          {"--folder", into(parent)},
                                          {"--rest", into(rest_seconds)},
                                          {"--csv", into(csv)}});
  if (!understood || tasks < kLeastTasks) {
    std::fputs(
        "usage: store_bench [--tasks 6m] [--batch TASKS] [--folder FOLDER] "
        "[--rest SECONDS] [--csv FILE]\n",
        stderr);
    return 2;
  }
  Results results(csv);
  std::vector<std::size_t> batch_sizes{1, 256, 1'024};
  if (batch != 0) batch_sizes = {batch};
  const auto rest = std::chrono::duration_cast<MonotonicTime::duration>(
      std::chrono::duration<double>(rest_seconds));
  std::vector<std::string> names;
  for (const std::size_t batch_tasks : batch_sizes) {
    std::string folder = parent / "detent-bench-XXXXXX";
    DETENT_CHECK(::mkdtemp(folder.data()) != nullptr);
    const std::size_t batches =
        std::max<std::size_t>(1, (batch != 0 ? tasks : share_of(tasks, batch_tasks)) / batch_tasks);
    names.push_back("groups of " + std::to_string(batch_tasks));
    const auto add = [&](const char* measure, double value) {
      results.add({tasks, names.back(), measure, 1, value});
    };
    Life(folder, batches, batch_tasks, rest, add).run();
    std::filesystem::remove_all(folder);
  }
  results.print(tasks, names);
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) { return detent::bench::main({argv + 1, argv + argc}); }
