# The Debian packages `detent` and `libdetent-dev`, and the program as one folder in a tarball, by
# CPack from the components of cmake/DetentInstall.cmake: `./dev package`. What a package has beyond
# an installation by hand is installed by components that `cmake --install` leaves out.
find_program(GZIP_EXECUTABLE gzip REQUIRED)

set(CPACK_PACKAGE_CONTACT "Detent maintainers <detent-maintainers@users.noreply.github.com>")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

# detent_install_packed(COMPONENT FILE FOLDER NAME): FILE, compressed as Debian's policy has it.
function(detent_install_packed component file folder name)
  set(packed ${PROJECT_BINARY_DIR}/${component}/${name}.gz)
  install(CODE "execute_process(COMMAND \"${GZIP_EXECUTABLE}\" -9 -n -c \"${file}\"
    OUTPUT_FILE \"${packed}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${packed} DESTINATION ${folder} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# detent_install_debian_doc(COMPONENT PACKAGE): what every package has in /usr/share/doc/PACKAGE.
function(detent_install_debian_doc component package)
  set(folder share/doc/${package})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${component})
  set(changelog ${PROJECT_BINARY_DIR}/${component}/changelog)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/changelog ${changelog} @ONLY)
  detent_install_packed(${component} ${changelog} ${folder} changelog.Debian)
  detent_install_packed(${component} ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${folder} changelog)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/copyright
    DESTINATION ${folder} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

detent_install_debian_doc(debian_library libdetent-dev)
detent_install_debian_doc(debian_program detent)
detent_install_packed(debian_program ${PROJECT_SOURCE_DIR}/docs/reference/detent.1
  share/man/man1 detent.1)
detent_install_unit(debian_program "User=detent\nGroup=detent" EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/detent.toml
  DESTINATION /etc/detent COMPONENT debian_program EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/prometheus/detent.rules.yml
  DESTINATION share/doc/detent COMPONENT debian_program EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/grafana/detent.json
  DESTINATION share/doc/detent/grafana COMPONENT debian_program EXCLUDE_FROM_ALL)

install(CODE "set(DETENT_PROGRAM \"$<TARGET_FILE:detent>\")
  set(DETENT_BUILD \"${PROJECT_BINARY_DIR}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/DetentBundle.cmake\")" COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} system)
set(CPACK_PACKAGE_FILE_NAME detent-${PROJECT_VERSION}-${system})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Says which components go into which of the two, and with which prefix.
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/DetentPackagesOf.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(scripts ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME detent)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "durable delayed-task server on timing wheels
Keeps tasks until they are due and hands them out on time: to workers over
HTTP/JSON or the beanstalk protocol, or as signed webhooks. An acknowledged
task is on disk and survives a crash; far tasks cost no memory. Recurring
schedules, access tokens, TLS, metrics and a dashboard are built in.")
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "adduser, tzdata")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libdetent-dev)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "timing wheels and a timer runtime for C++20
Headers and static libraries of Detent: a hierarchical timing wheel and other
timer queues behind one contract, a thread-safe tickless scheduler, cron and
calendars in time zones, coroutines, and a simulation for tests. With
librocksdb-dev also tasks on disk in one's own process, and with libssl-dev
a client for a server.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS tzdata)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "librocksdb-dev, libboost1.81-dev, libssl-dev")

include(CPack)
cpack_add_component(program GROUP server)
cpack_add_component(completions GROUP server)
cpack_add_component(debian_program GROUP server)
cpack_add_component(library GROUP library)
cpack_add_component(debian_library GROUP library)
cpack_add_component(bundle)
cpack_add_component(doc)
