# The dashboard becomes part of the binary: detent_embed_dashboard(OUT) writes a C++ file with every
# file of dashboard/ and of uPlot, plain and compressed, whenever one of them has changed.
#
# uPlot draws the charts. tools/setup run fetches the release that dashboard/package-lock.json pins;
# `npm ci --prefix dashboard` does the same. As a script (cmake -P) this is what makes the file.

# name=path, in the order of the names: find_dashboard_file() searches in it.
function(detent_dashboard_files folder out)
  file(GLOB names RELATIVE ${folder}
    ${folder}/*.html ${folder}/*.css ${folder}/*.js ${folder}/*.svg)
  set(files)
  foreach(name IN LISTS names)
    list(APPEND files ${name}=${folder}/${name})
  endforeach()
  list(APPEND files uplot-license.txt=${folder}/node_modules/uplot/LICENSE
    uplot.css=${folder}/node_modules/uplot/dist/uPlot.min.css
    uplot.js=${folder}/node_modules/uplot/dist/uPlot.iife.min.js)
  list(SORT files)
  set(${out} ${files} PARENT_SCOPE)
endfunction()

function(detent_embed_dashboard out)
  set(folder ${PROJECT_SOURCE_DIR}/dashboard)
  if(NOT EXISTS ${folder}/node_modules/uplot/dist/uPlot.iife.min.js)
    message(FATAL_ERROR "The dashboard's charts need uPlot, which is not in "
      "dashboard/node_modules. `tools/setup run` fetches it; so does `npm ci --prefix dashboard`.")
  endif()
  find_program(GZIP_EXECUTABLE gzip REQUIRED)
  detent_dashboard_files(${folder} files)
  list(TRANSFORM files REPLACE "^[^=]*=" "" OUTPUT_VARIABLE paths)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder})
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${out} -DGZIP=${GZIP_EXECUTABLE}
      -P ${PROJECT_SOURCE_DIR}/cmake/DetentDashboard.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/DetentDashboard.cmake
    COMMENT "Embedding the dashboard" VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()

# The bytes of `path` as a C++ string literal.
function(literal_of path out)
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  set(${out} "std::string_view(\"${bytes}\", sizeof(\"${bytes}\") - 1)" PARENT_SCOPE)
endfunction()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_txt "text/plain; charset=utf-8")
set(type_svg "image/svg+xml")
detent_dashboard_files(${FOLDER} files)
set(entries)
foreach(file IN LISTS files)
  string(REGEX MATCH "^([^=]*)=(.*)$" matched ${file})
  set(name ${CMAKE_MATCH_1})
  set(path ${CMAKE_MATCH_2})
  string(REGEX MATCH "[a-z]+$" kind ${name})
  execute_process(COMMAND ${GZIP} -9 -n -c ${path} OUTPUT_FILE ${OUT}.gz
    COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 ${path} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  literal_of(${path} plain)
  literal_of(${OUT}.gz gzip)
  string(APPEND entries
    "    {\"${name}\", \"${type_${kind}}\", \"\\\"${hash}\\\"\",\n     ${plain},\n     ${gzip}},\n")
endforeach()
file(REMOVE ${OUT}.gz)
file(WRITE ${OUT} "// Made from dashboard/ by cmake/DetentDashboard.cmake.
#include \"server/routes/dashboard_files.h\"

#include <algorithm>
#include <iterator>

namespace detent::server {
namespace {

const DashboardFile kFiles[] = {
${entries}};

}  // namespace

const DashboardFile* find_dashboard_file(std::string_view name) noexcept {
  const auto at = std::ranges::lower_bound(kFiles, name, {}, &DashboardFile::name);
  return at != std::end(kFiles) && at->name == name ? &*at : nullptr;
}

}  // namespace detent::server
")
