#include "bench/results.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace detent::bench {
namespace {

struct Estimate {
  double median;
  double half_interval;
};

// The interval between two values in the sorted order, whose ranks follow from the binomial
// distribution. It needs no assumption about the distribution of the values.
Estimate estimate(std::vector<double> values) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const auto first = static_cast<std::size_t>(std::max(0.0, (count - 1.96 * std::sqrt(count)) / 2));
  return {values[values.size() / 2], (values[values.size() - 1 - first] - values[first]) / 2};
}

}  // namespace

Results::Results(const std::string& csv) : csv_(std::fopen(csv.c_str(), "w")) {
  if (csv_ == nullptr) {
    std::perror(csv.c_str());
    std::exit(1);
  }
  std::fprintf(csv_, "timers,queue,measure,repetition,value\n");
}

Results::~Results() { std::fclose(csv_); }

void Results::add(const Measured& measured) {
  if (std::ranges::find(measures_, measured.measure) == measures_.end()) {
    measures_.push_back(measured.measure);
  }
  rows_[measured.timer_count][measured.measure][measured.queue].push_back(measured.value);
  std::fprintf(csv_, "%u,%s,%s,%u,%.2f\n", measured.timer_count, measured.queue.c_str(),
               measured.measure.c_str(), measured.repetition, measured.value);
  std::fflush(csv_);
}

void Results::print(std::uint32_t timer_count, const std::vector<std::string>& queues,
                    const std::string& prefix) const {
  constexpr std::ptrdiff_t kColumns = 8;
  std::vector<std::string> measures;
  std::ranges::copy_if(measures_, std::back_inserter(measures),
                       [&](const std::string& measure) { return measure.starts_with(prefix); });
  for (auto first = measures.begin(); first != measures.end();) {
    const auto last = first + std::min(kColumns, measures.end() - first);
    print_block(timer_count, queues, {first, last});
    first = last;
  }
  std::fflush(stdout);
}

void Results::print_block(std::uint32_t timer_count, const std::vector<std::string>& queues,
                          const std::vector<std::string>& measures) const {
  const auto& by_measure = rows_.at(timer_count);
  std::printf("%-18s", "");
  for (const std::string& measure : measures) std::printf(" %15s", measure.c_str());
  std::printf("\n");
  for (const std::string& queue : queues) {
    std::printf("%-18s", queue.c_str());
    for (const std::string& measure : measures) {
      const auto row = by_measure.find(measure);
      const bool has = row != by_measure.end() && row->second.contains(queue);
      if (has) {
        const Estimate value = estimate(row->second.at(queue));
        std::printf(" %9.1f ±%5.1f", value.median, value.half_interval);
      } else {
        std::printf(" %15s", "-");
      }
    }
    std::printf("\n");
  }
  std::printf("\n");
}

}  // namespace detent::bench
