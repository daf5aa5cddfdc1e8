#include "store/rocksdb/database/table_check.h"

#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace detent {

namespace {

std::vector<std::string> tables_in(const std::string& folder) {
  std::vector<std::string> tables;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".sst") tables.push_back(entry.path().string());
  }
  std::sort(tables.begin(), tables.end());
  return tables;
}

}  // namespace

std::string unreadable_table(const std::string& folder) {
  for (const std::string& table : tables_in(folder)) {
    rocksdb::SstFileReader reader{rocksdb::Options()};
    const rocksdb::Status status = reader.Open(table);
    if (status.ok()) continue;
    const std::string name = std::filesystem::path(table).filename();
    return "its table " + name + " cannot be read: " + status.ToString();
  }
  return "";
}

std::vector<std::string> damaged_tables(const std::string& folder) {
  std::vector<std::string> damaged;
  for (const std::string& table : tables_in(folder)) {
    rocksdb::SstFileReader reader{rocksdb::Options()};
    rocksdb::Status status = reader.Open(table);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) damaged.push_back("table " + table + ": " + status.ToString());
  }
  return damaged;
}

}  // namespace detent
