# What `cmake --install` puts where, and the package that find_package(detent) finds.
#
# Installed are the layers a library user may link (those with public headers), as static libraries
# with their headers; the program, when it is built, with its manual page, an example of its
# settings and its systemd unit. What stands in src/ only is private and stays here.
include(CMakePackageConfigHelpers)

set(DETENT_EXPORTED_LAYERS wheel base calendar runtime)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/detent)

foreach(layer IN LISTS DETENT_EXPORTED_LAYERS)
  install(TARGETS detent_${layer} EXPORT detent-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
install(EXPORT detent-targets NAMESPACE detent:: DESTINATION ${package_dir})
# find_package(detent COMPONENTS asio), for those who have Boost.
if(TARGET detent_asio)
  install(TARGETS detent_asio EXPORT detent-asio-targets
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT detent-asio-targets NAMESPACE detent:: DESTINATION ${package_dir})
endif()
# find_package(detent COMPONENTS durable), with the layers below it and RocksDB.
if(TARGET detent_durable)
  install(TARGETS detent_task detent_store detent_store_rocksdb detent_engine detent_durable
    EXPORT detent-durable-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT detent-durable-targets NAMESPACE detent:: DESTINATION ${package_dir})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/detent-config.cmake.in
  ${PROJECT_BINARY_DIR}/detent-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/detent-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/detent-config.cmake
  ${PROJECT_BINARY_DIR}/detent-config-version.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET detent)
  install(TARGETS detent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/docs/reference/detent.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/detent.toml DESTINATION ${CMAKE_INSTALL_DOCDIR})
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
      OUTPUT_FILE \"${file}\" COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES "${file}" DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  endforeach()
  # The unit names the program where it is installed, which is known only then. With the prefix /usr
  # it comes to lie where systemd looks.
  install(CODE "
    get_filename_component(DETENT_PREFIX \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(DETENT_PROGRAM \"\${DETENT_PREFIX}/${CMAKE_INSTALL_BINDIR}/detent\")
    configure_file(\"${PROJECT_SOURCE_DIR}/packaging/detent.service.in\"
      \"${PROJECT_BINARY_DIR}/detent.service\" @ONLY)")
  install(FILES ${PROJECT_BINARY_DIR}/detent.service DESTINATION lib/systemd/system)
endif()
