# detent_group_for_unity(target file…): says which of the files of a target are compiled together.
#
# With CMAKE_UNITY_BUILD the compiler reads several .cc files as one, which halves the time of a full
# build. Two files that declare the same name, each for itself in an unnamed namespace, must not meet.
# So each file joins the first group that has room and declares none of its names. The sources are
# formatted by clang-format, so a name is declared where a line begins at the first column.
#
# The scan is a heuristic. When it misses a name, the compiler reports a redefinition: rename one of
# the two.

set(DETENT_UNITY_FILES 12 CACHE STRING "The most files that are compiled as one")

# Sets `names` to the types, variables and functions that `file` declares at the first column.
function(detent_names_declared_in file names)
  set(found "")
  file(STRINGS ${file} lines REGEX "^[A-Za-z].*[({=;]")
  foreach(line IN LISTS lines)
    if(line MATCHES "^(using namespace|namespace [a-z:_]+ {|namespace {|static_assert|extern|TEST|TYPED_TEST|INSTANTIATE)")
      continue()
    elseif(line MATCHES "^(struct|class|enum class|enum|union) ([A-Za-z_0-9]+)")
      list(APPEND found ${CMAKE_MATCH_2})
    elseif(line MATCHES "^using ([A-Za-z_0-9]+) =")
      list(APPEND found ${CMAKE_MATCH_1})
    elseif(line MATCHES "^namespace ([a-z_]+) =")
      list(APPEND found ${CMAKE_MATCH_1})
    elseif(line MATCHES "^[^({=;]*[ &*>]([A-Za-z_0-9]+)(\\[[^]]*\\])? ?[({=;]")
      list(APPEND found ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${names} ${found} PARENT_SCOPE)
endfunction()

function(detent_group_for_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  set(groups 0)
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT path MATCHES "\\.cc$" OR NOT EXISTS ${path})
      continue() # a generated file is compiled alone
    endif()
    detent_names_declared_in(${path} declared)
    set(group 0)
    while(TRUE)
      if(group EQUAL groups)
        math(EXPR groups "${groups} + 1")
        set(names_of_${group} "")
        set(files_of_${group} 0)
        break()
      endif()
      set(common ${declared})
      if(common AND names_of_${group})
        list(REMOVE_ITEM common ${names_of_${group}})
      endif()
      if(common STREQUAL declared AND files_of_${group} LESS DETENT_UNITY_FILES)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    list(APPEND names_of_${group} ${declared})
    math(EXPR files_of_${group} "${files_of_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${target}_${group}")
  endforeach()
endfunction()
