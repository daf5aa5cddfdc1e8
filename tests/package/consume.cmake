# Run by ctest (CMakeLists.txt here): installs when WAY is find_package, then configures, builds and
# runs consumer/ in WORK. Any step that fails fails the test. WORK is made anew each time.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
set(arguments -DWAY=${WAY})
if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  list(APPEND arguments -DCMAKE_PREFIX_PATH=${WORK}/prefix)
  # Nothing of ours may come from anywhere else, and no private header may be among the installed.
  file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
  list(FILTER headers EXCLUDE REGEX "^detent/")
  if(headers)
    message(FATAL_ERROR "installed outside include/detent: ${headers}")
  endif()
  # What only the Debian packages have is left out, /etc above all.
  file(STRINGS ${BUILD}/install_manifest.txt outside REGEX "^/")
  list(FILTER outside EXCLUDE REGEX "^${WORK}/prefix/")
  if(outside)
    message(FATAL_ERROR "installed outside the prefix: ${outside}")
  endif()
  # The unit starts the program that was installed with it.
  set(unit ${WORK}/prefix/lib/systemd/system/detent.service)
  if(EXISTS ${WORK}/prefix/bin/detent)
    file(STRINGS ${unit} start REGEX "^ExecStart=")
    if(NOT start MATCHES "^ExecStart=${WORK}/prefix/bin/detent serve ")
      message(FATAL_ERROR "${unit} starts something else: ${start}")
    endif()
    # What is printed by the program at the installation holds something.
    foreach(file bash-completion/completions/detent zsh/site-functions/_detent
        fish/vendor_completions.d/detent.fish man/man1/detent.1)
      file(SIZE ${WORK}/prefix/share/${file} size)
      if(size LESS 1000)
        message(FATAL_ERROR "${file} has ${size} bytes")
      endif()
    endforeach()
  endif()
else()
  # The library alone, so it has to do without what the server needs.
  list(APPEND arguments -DDETENT_SOURCE=${SOURCE} -DDETENT_SANITIZE=${SANITIZE}
    -DCMAKE_DISABLE_FIND_PACKAGE_RocksDB=ON -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
endif()
if(SANITIZE)
  list(APPEND arguments -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -G ${GENERATOR}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${arguments})
run(${configure} -B ${WORK}/build)
run(${CMAKE_COMMAND} --build ${WORK}/build --target consumer host)
run(${WORK}/build/consumer)
run(${WORK}/build/host)
if(WAY STREQUAL "find_package")
  # Its optional components are not found then, but it is.
  run(${configure} -B ${WORK}/without -DCMAKE_DISABLE_FIND_PACKAGE_RocksDB=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
endif()
