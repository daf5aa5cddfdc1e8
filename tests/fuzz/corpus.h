// Replays the stored inputs of one function of fuzz_inputs.h.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace detent::fuzz {

/// DETENT_CORPUS is the folder with all inputs. `run` stops the process if an input breaks a
/// promise.
inline void replay(const char* name, void (*run)(std::string_view)) {
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(DETENT_CORPUS) / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    run(bytes);
    ++inputs;
  }
  EXPECT_GE(inputs, 5) << "corpus folder has too few inputs: " << DETENT_CORPUS << '/' << name;
}

}  // namespace detent::fuzz
