# detent_add_layer(wheel [SHARED] SOURCES … PUBLIC_HEADERS … NEEDS … PRIVATE …)
#
# One folder under src/ is one target, detent_<name> with the alias detent::<name>. NEEDS are the
# layers and packages its headers use, PRIVATE those only its sources use. The table of allowed
# edges is checked by tools/tidy; this only builds. PUBLIC_HEADERS are files under include/. SHARED
# makes a shared library instead of a static one.
# DETENT_COVERAGE lists layers in which it is counted what runs; all else is as in a release.
# COLD layers work once per command, or wait for another machine most of the time. A release
# compiles them at -O1, which takes about two thirds of the time.
function(detent_add_layer name)
  cmake_parse_arguments(LAYER "COLD;SHARED" "" "SOURCES;PUBLIC_HEADERS;NEEDS;PRIVATE" ${ARGN})
  set(target detent_${name})
  if(LAYER_SOURCES)
    detent_group_sources(${target} LAYER_SOURCES)
    set(kind STATIC)
    if(LAYER_SHARED)
      set(kind SHARED)
    endif()
    add_library(${target} ${kind} ${LAYER_SOURCES})
    # So that shared libraries can link it, and still inline its own functions (GNU ld, -fPIC).
    # Sources are grouped above; CMAKE_UNITY_BUILD of a project that adds this one would join
    # sources that have functions of the same name.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    if(LAYER_COLD)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    set(scope PUBLIC)
    # Tests and benchmarks include the headers in src/. A program that adds this project must not
    # see these headers, because it may have headers of the same names.
    set(inside PRIVATE)
    if(PROJECT_IS_TOP_LEVEL)
      set(inside PUBLIC)
    endif()
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:detent_warnings> ${LAYER_PRIVATE}
      ${inside} $<BUILD_INTERFACE:detent_expected>)
    target_include_directories(${target} ${inside} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(name IN_LIST DETENT_COVERAGE)
    # A layer of headers is compiled with its tests.
    string(REPLACE PUBLIC PRIVATE counted ${scope})
    target_compile_options(${target} ${counted} --coverage -fprofile-update=atomic -Og)
  endif()
  add_library(detent::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${LAYER_NEEDS})
  if(LAYER_PUBLIC_HEADERS)
    list(TRANSFORM LAYER_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/)
    target_sources(${target} ${scope} FILE_SET HEADERS
      BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${LAYER_PUBLIC_HEADERS})
  else()
    target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  endif()
endfunction()

# detent_add_test(wheel SOURCES … [LONG …] NEEDS … [LABELS …]): the tests of one folder are one
# program, detent_<name>_test. Each TEST in it is a test of ctest. Under sanitizers a process takes
# 0.1 s to start, so each test of ctest is an eighth of the program's TESTs. With ONE_PROCESS the
# whole program is one test of ctest. This is for TESTs that share an expensive fixture.
#
# The tests themselves are compiled at -O0, which takes half the time. The layers they test are
# compiled like the product. OF_HEADERS is for tests of code in headers, which the compiler reads
# with the test: a release has it at -O2, as most programs, and the trees of clang have it at -O1.
# LONG lists further sources, which compute for so long that they need the same. They come first in
# the link command, because the linker keeps the first copy of an inline function.
function(detent_add_test name)
  if(NOT DETENT_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "ONE_PROCESS;OF_HEADERS" "" "SOURCES;LONG;NEEDS;LABELS" ${ARGN})
  set(target detent_${name}_test)
  detent_group_sources(${target} TEST_SOURCES)
  add_executable(${target} ${TEST_LONG} ${TEST_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE detent_warnings ${TEST_NEEDS} GTest::gtest_main)
  set(optimized $<$<CONFIG:Release>:-O2>$<$<CONFIG:RelWithDebInfo>:-O1>)
  if(TEST_OF_HEADERS)
    target_compile_options(${target} PRIVATE ${optimized})
  else()
    target_compile_options(${target} PRIVATE -O0)
    set_source_files_properties(${TEST_LONG} PROPERTIES COMPILE_OPTIONS "${optimized}")
  endif()
  if(DETENT_SANITIZE MATCHES "thread")
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_suppressions.cc)
  endif()
  if(DETENT_COVERAGE)
    target_link_options(${target} PRIVATE --coverage)
  endif()
  if(TEST_ONE_PROCESS)
    add_test(NAME ${target} COMMAND ${target})
    set_tests_properties(${target} PROPERTIES LABELS "${name};${TEST_LABELS}" TIMEOUT 600)
    return()
  endif()
  if(DETENT_SANITIZE)
    foreach(part RANGE 7)
      add_test(NAME ${target}.${part} COMMAND ${target} --gtest_brief=1)
      set_tests_properties(${target}.${part} PROPERTIES LABELS "${name};${TEST_LABELS}" TIMEOUT 600
        ENVIRONMENT "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${part}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS "${name};${TEST_LABELS}" TIMEOUT 600)
endfunction()
