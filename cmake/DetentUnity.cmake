# detent_group_sources(target sources): with DETENT_UNITY, replaces the .cc files in the list
# `sources` by files that include several of them each, so that the compiler reads several as one.
# That saves more than half of the processor time of a full build.
#
# Two files that declare the same name, each in its own unnamed namespace, must not meet. So each
# file joins the first group that has room and declares none of its names. The sources are formatted
# by clang-format, so a name is declared where a line begins at the first column. This scan is a
# heuristic. When it misses a name, the compiler reports a redefinition: rename one of the two.
#
# CMake's own unity builds include files by absolute paths, so that ccache could not use its objects
# in another clone.

option(DETENT_UNITY "Compile several source files as one" OFF)
set(DETENT_UNITY_FILES 12 CACHE STRING "The most files that are compiled as one")

# Sets `names` to the types, variables and functions that `file` declares at the first column.
function(detent_names_declared_in file names)
  set(found "")
  file(STRINGS ${file} lines REGEX "^[A-Za-z].*[({=;]")
  foreach(line IN LISTS lines)
    if(line MATCHES "^(using namespace|namespace |static_assert)" OR
       line MATCHES "^(extern|TEST|TYPED_TEST|INSTANTIATE)")
      continue()
    elseif(line MATCHES "^(struct|class|enum class|enum|union) ([A-Za-z_0-9]+)")
      list(APPEND found ${CMAKE_MATCH_2})
    elseif(line MATCHES "^using ([A-Za-z_0-9]+) =")
      list(APPEND found ${CMAKE_MATCH_1})
    elseif(line MATCHES "^[^({=;]*[ &*>]([A-Za-z_0-9]+)(\\[[^]]*\\])? ?[({=;]")
      list(APPEND found ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${names} ${found} PARENT_SCOPE)
endfunction()

function(detent_group_sources target sources)
  if(NOT DETENT_UNITY)
    return()
  endif()
  set(groups 0)
  set(kept "")
  foreach(source IN LISTS ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT EXISTS ${path}) # generated, and compiled alone
      list(APPEND kept ${source})
      continue()
    endif()
    detent_names_declared_in(${path} declared)
    set(group 0)
    while(group LESS groups)
      set(free ${declared})
      if(declared AND names_of_${group})
        list(REMOVE_ITEM free ${names_of_${group}})
      endif()
      list(LENGTH files_of_${group} size)
      if("${free}" STREQUAL "${declared}" AND size LESS DETENT_UNITY_FILES)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    if(group EQUAL groups)
      math(EXPR groups "${groups} + 1")
    endif()
    list(APPEND names_of_${group} ${declared})
    list(APPEND files_of_${group} ${path})
  endforeach()
  set(group 0)
  while(group LESS groups)
    set(unity ${CMAKE_CURRENT_BINARY_DIR}/${target}_${group}.cc)
    set(text "")
    foreach(path IN LISTS files_of_${group})
      file(RELATIVE_PATH relative ${CMAKE_CURRENT_BINARY_DIR} ${path})
      string(APPEND text "#include \"${relative}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${unity} CONTENT "${text}" @ONLY)
    list(APPEND kept ${unity})
    math(EXPR group "${group} + 1")
  endwhile()
  set(${sources} ${kept} PARENT_SCOPE)
endfunction()
