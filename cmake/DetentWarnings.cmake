# The warnings every target of this project is compiled with. They are errors when the project is
# built alone, so that none accumulates.
add_library(detent_warnings INTERFACE)
target_compile_options(detent_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-qual -Wextra-semi
  # A program that adds this project brings flags of its own, which may cause other warnings.
  $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # Two warnings judge files one by one, which is how clang-tidy compiles them: a local variable may
  # have the name of another file's constant, and an unnamed namespace is of one file even when
  # several are compiled as one.
  $<$<NOT:$<BOOL:${DETENT_UNITY}>>:-Wshadow>
  $<$<AND:$<BOOL:${DETENT_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  # Designated initialisers leave out what has a default; g++ warns of that, clang does not.
  -Wno-missing-field-initializers
  # g++ 12 reports these on its own std::string and std::optional at -O2 (GCC bugs 105329, 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
