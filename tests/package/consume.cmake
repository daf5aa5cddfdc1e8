# A test script, called by CMakeLists.txt in this folder. If WAY is find_package, it installs
# Detent. Then it configures, builds and runs consumer/ in a new folder WORK. If a step fails, the
# test fails.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(arguments -DWAY=${WAY})
if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  list(APPEND arguments -DCMAKE_PREFIX_PATH=${WORK}/prefix)
  # All files of Detent must come from this installation, and it must not have private headers.
  file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
  list(FILTER headers EXCLUDE REGEX "^detent/")
  if(headers)
    message(FATAL_ERROR "installed outside include/detent: ${headers}")
  endif()
  # Leaves out the files that only the Debian packages have, such as those in /etc.
  file(STRINGS ${BUILD}/install_manifest.txt outside REGEX "^/")
  list(FILTER outside EXCLUDE REGEX "^${WORK}/prefix/")
  if(outside)
    message(FATAL_ERROR "installed outside the prefix: ${outside}")
  endif()
  # The unit must start the installed program.
  set(unit ${WORK}/prefix/lib/systemd/system/detent.service)
  if(EXISTS ${WORK}/prefix/bin/detent)
    file(STRINGS ${unit} start REGEX "^ExecStart=")
    if(NOT start MATCHES "^ExecStart=${WORK}/prefix/bin/detent serve ")
      message(FATAL_ERROR "${unit} starts something else: ${start}")
    endif()
    # The program generates these files during the installation. They must not be empty.
    foreach(file bash-completion/completions/detent zsh/site-functions/_detent
        fish/vendor_completions.d/detent.fish man/man1/detent.1)
      file(SIZE ${WORK}/prefix/share/${file} size)
      if(size LESS 1000)
        message(FATAL_ERROR "${file} has ${size} bytes")
      endif()
    endforeach()
  endif()
else()
  # Builds the library alone. Each search for a package is an error, except for the threads.
  set(part ${SOURCE})
  if(WAY STREQUAL "FetchContent")
    set(part ${WORK}/detent.tar.gz)
    run(${CMAKE_COMMAND} -E chdir ${SOURCE} ${CMAKE_COMMAND} -E tar czf ${part}
      CMakeLists.txt cmake include src)
  endif()
  list(APPEND arguments -DDETENT_SOURCE=${part} -DDETENT_SANITIZE=${SANITIZE}
    -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=${CMAKE_CURRENT_LIST_DIR}/consumer/no_packages.cmake)
endif()
if(SANITIZE)
  list(APPEND arguments -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${arguments})
run(${configure} -B ${WORK}/build)
if(NOT WAY STREQUAL "find_package")
  # As a part of another project, Detent adds nothing to `all`, to `install` and to the tests.
  run(${CMAKE_COMMAND} --build ${WORK}/build)
  run(${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/prefix)
  file(GLOB_RECURSE added ${WORK}/build/*.a ${WORK}/prefix/*)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build -N
    OUTPUT_VARIABLE tests COMMAND_ERROR_IS_FATAL ANY)
  if(added OR NOT tests MATCHES "Total Tests: 0")
    message(FATAL_ERROR "built or installed: ${added}\n${tests}")
  endif()
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer host)
run(${WORK}/build/consumer)
run(${WORK}/build/host)
if(WAY STREQUAL "find_package")
  # The package is found, but its optional components are not.
  run(${configure} -B ${WORK}/without -DCMAKE_DISABLE_FIND_PACKAGE_RocksDB=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
endif()
