// A temporary folder for one test. The destructor removes it with its contents.
#pragma once

#include <cstdlib>

#include <filesystem>
#include <string>
#include <system_error>

#include "detent/check.h"

namespace detent {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "detent-XXXXXX").string();
    DETENT_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace detent
