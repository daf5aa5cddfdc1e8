# Result<T> (src/base/result.h) is made of tl::expected. The server needs its package, as it needs
# others. The library alone needs no package: the folder small_expected has the part that it uses.
add_library(detent_expected INTERFACE)
if(DETENT_SERVER)
  find_package(tl-expected REQUIRED)
  target_link_libraries(detent_expected INTERFACE tl::expected)
else()
  target_include_directories(detent_expected INTERFACE ${CMAKE_CURRENT_LIST_DIR}/small_expected)
endif()
