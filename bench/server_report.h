// The figures of server_bench: medians beside the targets, as a table and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/server_peer.h"

namespace detent::bench {

enum class Better : std::uint8_t { more, less };

/// With whom ours is compared: servers that promise as much or more, or all that know delays.
enum class Rivals : std::uint8_t { same_promise, with_delays };

/// A row of the table.
struct Measure {
  std::string name;   ///< as in ServerFigures
  std::string title;  ///< what it is, and its unit
  Better better;
  Rivals rivals;
  std::optional<double> target;
  std::uint32_t target_from = 0;  ///< the target is judged with so many tasks waiting, or more
  std::string judged = "detent";  ///< the column that is compared; without it there is no row
};

struct Column {
  std::string name;
  Promise promise;
  bool delays;  ///< it holds tasks back until they are due
};

/// What became of one measure: ours beside the best rival and the target. Absent is what nobody
/// measured.
struct Verdict {
  std::optional<double> ours;
  std::string best_rival;
  std::optional<double> ratio;  ///< ours to the best rival; above 1 is better than it
  std::optional<bool> is_met;
};

class ServerReport {
 public:
  /// `waiting`: how many tasks wait in the workload of that name.
  ServerReport(std::vector<Column> columns, std::uint32_t waiting);

  void add(const std::string& measure, const std::string& server, double value);
  /// The server has no figures for any measure of that workload, whatever else was added.
  void add_error(const std::string& workload, const std::string& server, const std::string& what);

  std::optional<double> median(const std::string& measure, const std::string& server) const;
  Verdict judge(const Measure& measure) const;

  void print() const;
  /// `head`: further members of the outermost object, as JSON with a comma at the end. Returns:
  /// whether the file could be written.
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
