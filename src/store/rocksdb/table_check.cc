#include "store/rocksdb/table_check.h"

#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace detent {

std::vector<std::string> damaged_tables(const std::string& folder) {
  std::vector<std::string> tables;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".sst") tables.push_back(entry.path().string());
  }
  std::sort(tables.begin(), tables.end());
  std::vector<std::string> damaged;
  for (const std::string& table : tables) {
    rocksdb::SstFileReader reader{rocksdb::Options()};
    rocksdb::Status status = reader.Open(table);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) damaged.push_back("table " + table + ": " + status.ToString());
  }
  return damaged;
}

}  // namespace detent
