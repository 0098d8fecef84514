# Headers of others that most of our files include, compiled once: three tenths less CPU time to build. A debug build goes without
# them, so that a forgotten #include shows there.
set(convoy_library_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)

# convoy_precompile(TARGET OWNER HEADERS...): TARGET takes the headers that OWNER has compiled, or compiles them if it is the
# owner. Both have the same flags. For ccache: -fpch-preprocess, and what to know compiled headers by, since they differ from
# one compilation of them to the next.
function(convoy_precompile target owner)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum CONTENT
      "${ARGN} g++ ${CMAKE_CXX_COMPILER_VERSION} fmt ${fmt_VERSION} GTest ${GTest_VERSION} CLI11 ${CLI11_VERSION} json ${nlohmann_json_VERSION}")
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
