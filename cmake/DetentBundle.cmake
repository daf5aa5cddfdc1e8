# Installs what the tarball has instead of the component `program`: the program, the libraries that
# it needs, except those of glibc, the licenses of their packages, and the list of software in the
# program. The program searches for the libraries relative to its own place, so the user can put the
# folder anywhere.
#
# An install rule of cmake/DetentPackages.cmake includes this script. DETENT_PROGRAM is the program,
# and DETENT_BUILD is its build tree.
find_program(PATCHELF patchelf REQUIRED)
find_program(DPKG_QUERY dpkg-query REQUIRED)
find_program(STRIP strip REQUIRED)

file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${DETENT_PROGRAM} RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|anl))\\.so")
set(patterns)
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} file)
  file(INSTALL ${file} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/detent TYPE FILE RENAME ${name})
  # The list of files of a package can have a path without /usr, so only its end is compared.
  string(REGEX MATCH "/[^/]+/[^/]+$" end ${file})
  list(APPEND patterns "*${end}")
endforeach()

execute_process(COMMAND ${DPKG_QUERY} --search ${patterns}
  OUTPUT_VARIABLE owners COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" owners "${owners}")
list(TRANSFORM owners REPLACE ":.*" "")
list(REMOVE_DUPLICATES owners)
foreach(package ${owners})
  file(INSTALL /usr/share/doc/${package}/copyright TYPE FILE RENAME ${package}
    DESTINATION ${CMAKE_INSTALL_PREFIX}/share/doc/detent/licenses)
endforeach()

file(INSTALL ${DETENT_PROGRAM} DESTINATION ${CMAKE_INSTALL_PREFIX}/bin TYPE EXECUTABLE)
get_filename_component(name ${DETENT_PROGRAM} NAME)
set(program $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/${name})
execute_process(COMMAND ${STRIP} ${program} COMMAND_ERROR_IS_FATAL ANY)
# The libraries must find each other too. DT_RPATH applies to them, DT_RUNPATH would not.
execute_process(COMMAND ${PATCHELF} --force-rpath --set-rpath "$ORIGIN/../lib/detent" ${program}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/sbom ${DETENT_BUILD}
  $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/detent/detent.spdx.json
  COMMAND_ERROR_IS_FATAL ANY)
