# -DDETENT_SANITIZE=address,undefined or =thread builds everything under those sanitizers. Of debug
# data only the lines: a report names them, and the rest takes a sixth of the compiler's time.
if(DETENT_SANITIZE)
  add_compile_options(-fsanitize=${DETENT_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${DETENT_SANITIZE})
  if(DETENT_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 can't assemble coroutines with it: "Cannot represent a difference across sections".
    add_compile_options(-fno-sanitize=function)
  endif()
  if(DETENT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ says that TSan does not model atomic_thread_fence, which Asio uses; Asio does not rely on
    # fences for data that tests share.
    add_compile_options(-Wno-tsan)
  endif()
endif()
