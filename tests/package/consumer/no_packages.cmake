# Makes each find_package an error in a project that wants none. CMake looks for the threads library
# in the compiler's own folders, so this package is allowed.
macro(refuse_packages method name)
  if(NOT "${name}" STREQUAL "Threads")
    message(FATAL_ERROR "find_package(${name} ${ARGN}) is called")
  endif()
  find_package(${name} ${ARGN} BYPASS_PROVIDER)
endmacro()
cmake_language(SET_DEPENDENCY_PROVIDER refuse_packages SUPPORTED_METHODS FIND_PACKAGE)
