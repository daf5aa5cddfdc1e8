# Read by CPack once for each kind of package that cmake/DetentPackages.cmake lists: which
# components it holds. Debian packages are of /usr, with a file in /etc; the tarball is a folder.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL program completions debian_program library debian_library)
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
else()
  set(CPACK_COMPONENTS_ALL bundle completions doc)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
