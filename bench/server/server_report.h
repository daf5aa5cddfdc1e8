// The figures of server_bench: medians and targets, as a table and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/server/server_peer.h"

namespace detent::bench {

enum class Better : std::uint8_t { more, less };

/// The servers that Detent is compared with: servers with the same promise or a stronger promise,
/// or all servers that support delays.
enum class Rivals : std::uint8_t { same_promise, with_delays };

/// A row of the table.
struct Measure {
  std::string name;   ///< as in ServerFigures
  std::string title;  ///< description and unit
  Better better;
  Rivals rivals;
  std::optional<double> target;
  std::uint32_t target_from = 0;  ///< the target applies from this number of waiting tasks
  std::string judged = "detent";  ///< the column that is compared; the row needs it
};

struct Column {
  std::string name;
  Promise promise;
  bool delays;  ///< it keeps tasks until they are due
};

/// The result of one measure: Detent, the best rival and the target. Values that were not measured
/// are empty.
struct Verdict {
  std::optional<double> ours;
  std::string best_rival;
  std::optional<double> ratio;  ///< Detent compared with the best rival; above 1, Detent is better
  std::optional<bool> is_met;
};

class ServerReport {
 public:
  /// `waiting`: the number of tasks in the workload of this name.
  ServerReport(std::vector<Column> columns, std::uint32_t waiting);

  void add(const std::string& measure, const std::string& server, double value);
  /// The server failed in this workload. Its figures of the workload do not count.
  void add_error(const std::string& workload, const std::string& server, const std::string& what);

  std::optional<double> median(const std::string& measure, const std::string& server) const;
  Verdict judge(const Measure& measure) const;

  void print() const;
  /// `head`: more members of the outermost object, as JSON with a comma at the end. Returns false
  /// if the file could not be written.
  bool write_json(const std::string& path, const std::string& head) const;

  /// No server failed in any workload.
  bool is_clean() const { return errors_.empty(); }

 private:
  struct Failure {
    std::string workload;
    std::string server;
    std::string what;
  };

  const Column* judged_column(const Measure& measure) const;
  bool has_failed(const std::string& measure, const std::string& server) const;
  void print_row(const Measure& measure) const;

  const std::vector<Column> columns_;
  const std::uint32_t waiting_;
  std::vector<Measure> measures_;
  std::map<std::pair<std::string, std::string>, std::vector<double>> values_;
  std::vector<Failure> errors_;
};

}  // namespace detent::bench
