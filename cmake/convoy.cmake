# What every target of ours is built with. The baseline is x86-64 with AVX2 (x86-64-v3); code for newer CPUs
# sits in files of its own (*_avx512.cc, *_amx.cc) and is chosen at run time.
add_library(convoy_flags INTERFACE)
# (-Wrestrict of GCC 12 cries wolf over std::string.)
target_compile_options(convoy_flags INTERFACE
  -march=x86-64-v3 -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -Wno-unknown-pragmas -Wno-restrict -ffp-contract=off)
target_include_directories(convoy_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(convoy_flags INTERFACE OpenMP::OpenMP_CXX)
if(CONVOY_SANITIZE)
  target_compile_options(convoy_flags INTERFACE -fsanitize=${CONVOY_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(convoy_flags INTERFACE -fsanitize=${CONVOY_SANITIZE})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/sanitizers.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)

# convoy_for_newer_cpus(SOURCES OPTION ...): files of the current folder for other CPUs than the baseline.
function(convoy_for_newer_cpus sources)
  # GCC 12 takes the deliberately undefined registers of its own intrinsics for uninitialised variables.
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ARGN};-Wno-maybe-uninitialized" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# convoy_library(NAME DEPENDS ... WITHOUT FOLDER ...): every *.cc below the current folder but *_test.cc and those in the
# folders WITHOUT (which are libraries of their own) becomes libconvoy_NAME; every
# *_test.cc becomes part of NAME_test, whose tests are labelled fast, or slow where their name contains "Slow".
function(convoy_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;WITHOUT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  foreach(folder ${ARG_WITHOUT})
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(source ${sources})
    if(source MATCHES "_avx512\\.cc$")
      convoy_for_newer_cpus(${source} -march=skylake-avx512 -mprefer-vector-width=512)
    elseif(source MATCHES "_amx\\.cc$")
      convoy_for_newer_cpus(${source} -march=sapphirerapids -mprefer-vector-width=512)
    endif()
  endforeach()
  add_library(convoy_${name} STATIC ${sources})
  target_link_libraries(convoy_${name} PUBLIC convoy_flags fmt::fmt ${ARG_DEPENDS})
  convoy_precompile(convoy_${name} convoy_base ${convoy_library_headers})
  if(tests)
    convoy_test(${name}_test SOURCES ${tests} DEPENDS convoy_${name})
  endif()
endfunction()

function(convoy_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  # Tests take two fifths of the time to compile. What they spend theirs in is in the libraries, but for the sums against which kernels are tested.
  if(NOT name MATCHES "amx")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
    convoy_precompile(${name} base_test ${convoy_library_headers} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 --gtest_filter=-*Slow*)
  # Tests run side by side: waiting threads sleep, and what is timed then is not remembered for real runs.
  set(environment "OMP_WAIT_POLICY=passive" "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache" ${convoy_sanitizer_environment})
  math(EXPR fast_s "300 * ${convoy_patience}")
  math(EXPR slow_s "900 * ${convoy_patience}")
  set_tests_properties(${name} PROPERTIES LABELS fast TIMEOUT ${fast_s} ENVIRONMENT "${environment}")
  set(slow FALSE)
  foreach(source ${ARG_SOURCES})
    file(STRINGS ${source} found REGEX "TEST.*Slow")
    if(found)
      set(slow TRUE)
    endif()
  endforeach()
  if(slow)
    # By their cost these begin where tests run side by side; the fast ones fill the end.
    add_test(NAME ${name}_slow COMMAND ${name} --gtest_brief=1 --gtest_filter=*Slow*)
    set_tests_properties(${name}_slow PROPERTIES LABELS slow TIMEOUT ${slow_s} COST 100 ENVIRONMENT "${environment}")
  endif()
endfunction()
