// Measured values of many queues. They are written to a CSV file immediately, and printed as tables
// of medians.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace detent::bench {

/// One line of the CSV file. All benchmarks of timers have the same columns, so one report can read
/// all files.
struct Measured {
  std::uint32_t timer_count;
  std::string queue;
  std::string measure;
  std::uint32_t repetition;
  double value;
};

class Results {
 public:
  /// Ends the process if `csv` cannot be opened.
  explicit Results(const std::string& csv);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  void add(const Measured& measured);

  /// Prints the medians for one timer count, and half of the 95 % confidence interval of each
  /// median. With up to five repetitions, this is half of their range. There is a row per queue, in
  /// the given order, and a column per measure, in the order of the first values. "-" means that
  /// the queue has no value. Prints only measures whose names begin with `prefix`.
  void print(std::uint32_t timer_count, const std::vector<std::string>& queues,
             const std::string& prefix = "") const;

 private:
  // The values of each queue, one per repetition.
  using Row = std::map<std::string, std::vector<double>>;

  void print_block(std::uint32_t timer_count, const std::vector<std::string>& queues,
                   const std::vector<std::string>& measures) const;

  std::FILE* csv_;
  std::vector<std::string> measures_;                         // in the order first seen
  std::map<std::uint32_t, std::map<std::string, Row>> rows_;  // by timer count, then measure
};

}  // namespace detent::bench
