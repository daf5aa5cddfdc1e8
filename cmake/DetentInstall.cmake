# What `cmake --install` puts where, and the package that find_package(detent) finds.
#
# Installed are the layers a library user may link (those with public headers), as static libraries
# with their headers; the program, when it is built, with its manual page, an example of its
# settings and its systemd unit. What stands in src/ only is private and stays here. Each file
# belongs to a component, from which cmake/DetentPackages.cmake makes packages: `library` and
# `program` go everywhere, `unit` and `doc` where the packages have something else instead.
include(CMakePackageConfigHelpers)

set(DETENT_EXPORTED_LAYERS wheel base calendar runtime)
if(TARGET detent_task)  # below both components, durable and client
  list(APPEND DETENT_EXPORTED_LAYERS task)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/detent)

# detent_install_layers(EXPORT LAYERS…): the layers' archives and headers, and the file of CMake
# targets EXPORT that names them.
function(detent_install_layers export)
  list(TRANSFORM ARGN PREPEND detent_ OUTPUT_VARIABLE targets)
  install(TARGETS ${targets} EXPORT ${export}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
  install(EXPORT ${export} NAMESPACE detent:: DESTINATION ${package_dir} COMPONENT library)
endfunction()

# detent_install_pkg_config(NAME COMPONENT): packaging/NAME.pc.in, which finds its folders from
# where it lies.
function(detent_install_pkg_config name component)
  set(folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH DETENT_PREFIX_FROM_PC /${folder} /)
  set(file ${PROJECT_BINARY_DIR}/${name}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/${name}.pc.in ${file} @ONLY)
  install(FILES ${file} DESTINATION ${folder} COMPONENT ${component})
endfunction()

detent_install_layers(detent-targets ${DETENT_EXPORTED_LAYERS})
detent_install_pkg_config(detent library)
# find_package(detent COMPONENTS c): the shared library. It is a component of its own, because the
# Debian packages do not have it.
install(TARGETS detent_c EXPORT detent-c-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT c)
install(EXPORT detent-c-targets NAMESPACE detent:: DESTINATION ${package_dir} COMPONENT c)
detent_install_pkg_config(detent-c c)
# find_package(detent COMPONENTS asio), for those who have Boost.
if(TARGET detent_asio)
  detent_install_layers(detent-asio-targets asio)
endif()
# find_package(detent COMPONENTS durable), with the layers below it and RocksDB.
if(TARGET detent_durable)
  detent_install_layers(detent-durable-targets store store_rocksdb engine durable)
  detent_install_pkg_config(detent-durable library)
endif()
# find_package(detent COMPONENTS client), for those who have Boost and OpenSSL.
if(TARGET detent_client)
  detent_install_layers(detent-client-targets protocol_json net client)
  detent_install_pkg_config(detent-client library)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/detent-config.cmake.in
  ${PROJECT_BINARY_DIR}/detent-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/detent-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/detent-config.cmake
  ${PROJECT_BINARY_DIR}/detent-config-version.cmake
  DESTINATION ${package_dir} COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)

# detent_install_unit(COMPONENT USER [EXCLUDE_FROM_ALL]): the systemd units, for the program where
# it is installed, which is known only then. With the prefix /usr they lie where systemd looks.
function(detent_install_unit component user)
  set(folder ${PROJECT_BINARY_DIR}/${component})
  install(CODE "
    get_filename_component(DETENT_PREFIX \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(DETENT_PROGRAM \"\${DETENT_PREFIX}/${CMAKE_INSTALL_BINDIR}/detent\")
    set(DETENT_USER \"${user}\")
    foreach(unit detent.service detent-backup.service)
      configure_file(
        \"${PROJECT_SOURCE_DIR}/packaging/\${unit}.in\" \"${folder}/\${unit}\" @ONLY)
    endforeach()"
    COMPONENT ${component} ${ARGN})
  install(FILES ${folder}/detent.service ${folder}/detent-backup.service
    ${PROJECT_SOURCE_DIR}/packaging/detent-backup.timer
    DESTINATION lib/systemd/system COMPONENT ${component} ${ARGN})
endfunction()

if(TARGET detent)
  install(TARGETS detent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/reference/detent.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT doc)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/detent.toml
    ${PROJECT_SOURCE_DIR}/packaging/prometheus/detent.rules.yml
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/grafana/detent.json
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/grafana COMPONENT doc)
  # What the shells read is printed by the program.
  foreach(script bash:detent:bash-completion/completions zsh:_detent:zsh/site-functions
      fish:detent.fish:fish/vendor_completions.d)
    string(REPLACE ":" ";" script "${script}")
    list(GET script 0 shell)
    list(GET script 1 file)
    list(GET script 2 folder)
    set(file "${PROJECT_BINARY_DIR}/completions/${file}")
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completions)
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:detent>\" completion ${shell}
      OUTPUT_FILE \"${file}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT completions)
    install(FILES "${file}" DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT completions)
  endforeach()
  detent_install_unit(unit "DynamicUser=yes")
  include(DetentPackages)
endif()
