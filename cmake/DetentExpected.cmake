# Result<T> (src/base/result.h) stands on tl::expected where that is installed. Elsewhere
# std::expected takes its place, and all is compiled as C++23: the library alone needs no package.
include(CheckCXXSourceCompiles)
find_package(tl-expected QUIET)
if(TARGET tl::expected)
  return()
endif()
set(CMAKE_CXX_STANDARD 23)
check_cxx_source_compiles("
  #include <expected>
  int main() { return std::expected<int, int>(0).value(); }" DETENT_HAS_STD_EXPECTED)
if(NOT DETENT_HAS_STD_EXPECTED)
  message(FATAL_ERROR "This compiler has no std::expected (C++23; g++ 12 has it), and the header "
    "tl/expected.hpp (Debian: libexpected-dev), which takes its place, is not installed.")
endif()
add_library(detent_std_expected INTERFACE)
add_library(tl::expected ALIAS detent_std_expected)
target_include_directories(detent_std_expected INTERFACE ${CMAKE_CURRENT_LIST_DIR}/std_expected)
