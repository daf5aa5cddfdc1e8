#include "tests/oracle/data_lines.h"

#include <fstream>

#include "detent/check.h"

namespace detent::oracle {

std::vector<std::string> lines_of(std::string_view file_name) {
  std::ifstream file(DETENT_ORACLE_FOLDER "/" + std::string(file_name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  DETENT_CHECK(!lines.empty());
  return lines;
}

std::vector<std::string> parts_of(std::string_view line, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = line.find(separator, at);
    parts.emplace_back(line.substr(at, end - at));
    if (end == line.npos) return parts;
    at = end + separator.size();
  }
}

}  // namespace detent::oracle
