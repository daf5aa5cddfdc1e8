// Measured values of many queues: written to a CSV file as they come, printed as tables of medians.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace detent::bench {

/// One line of the CSV file. The same columns in every benchmark of timers, so that one report
/// reads them all.
struct Measured {
  std::uint32_t timer_count;
  std::string queue;
  std::string measure;
  std::uint32_t repetition;
  double value;
};

class Results {
 public:
  /// Ends the process when `csv` cannot be opened.
  explicit Results(const std::string& csv);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  void add(const Measured& measured);

  /// Prints the medians for one timer count: a row a queue, in the order given, a column a measure,
  /// in the order first seen. "-" is what a queue could not do. Only measures whose names begin
  /// with `prefix`.
  void print(std::uint32_t timer_count, const std::vector<std::string>& queues,
             const std::string& prefix = "") const;

 private:
  // Values by queue, one for each repetition.
  using Row = std::map<std::string, std::vector<double>>;

  void print_block(std::uint32_t timer_count, const std::vector<std::string>& queues,
                   const std::vector<std::string>& measures) const;

  std::FILE* csv_;
  std::vector<std::string> measures_;                         // in the order first seen
  std::map<std::uint32_t, std::map<std::string, Row>> rows_;  // by timer count, then measure
};

}  // namespace detent::bench
