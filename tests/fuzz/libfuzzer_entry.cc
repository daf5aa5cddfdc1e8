// The entry for libFuzzer. DETENT_FUZZ_INPUT is the function of fuzz_inputs.h for this program.
//
//     build/asan/tests/fuzz/detent_http_routes_fuzz -max_len=2048 NEW_INPUTS CORPUS
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz_inputs.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  detent::fuzz::DETENT_FUZZ_INPUT({reinterpret_cast<const char*>(data), size});
  return 0;
}
