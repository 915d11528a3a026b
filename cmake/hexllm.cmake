# Helpers of the build: one library per folder, its unit tests, its fuzz targets.

include(unity)

# Headers that most files read.
set(HEXLLM_PCH_HEADERS <fmt/format.h> <nlohmann/json.hpp> <algorithm> <functional> <map> <memory> <optional> <span> <string> <string_view> <vector>)
set(HEXLLM_TEST_PCH_HEADERS ${HEXLLM_PCH_HEADERS} <gmock/gmock.h> <gtest/gtest.h> <random> <set>)

# The optimization of tests: they are many, and what takes their time is in the libraries.
set(HEXLLM_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)

# hexllm_precompile(TARGET SHARED HEADERS OPTIONS LIBRARIES ...): compiles TARGET with the precompiled headers of the target
# SHARED, which is made from the list named HEADERS when first asked for.
function(hexllm_precompile target shared headers options)
  if(NOT HEXLLM_PCH)
    return()
  endif()
  if(NOT TARGET ${shared})
    file(WRITE ${CMAKE_BINARY_DIR}/generated/${shared}.cc "// Holds precompiled headers.\n")
    add_library(${shared} OBJECT ${CMAKE_BINARY_DIR}/generated/${shared}.cc)
    target_compile_options(${shared} PRIVATE ${options})
    target_link_libraries(${shared} PRIVATE hexllm_options ${ARGN})
    target_precompile_headers(${shared} PRIVATE ${${headers}})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()

# hexllm_library(NAME DIR DEPS ... [EXCLUDE regex ...] [ONLY regex])
# A static library hexllm_NAME of all .cc in DIR (recursively) that are no test, test helper (*_testing.cc), fuzz target
# or benchmark.
function(hexllm_library name dir)
  cmake_parse_arguments(ARG "" "" "DEPS;EXCLUDE;ONLY" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${dir}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|testing|fuzz|bench)\\.cc$")
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  foreach(pattern ${ARG_ONLY})
    list(FILTER sources INCLUDE REGEX "${pattern}")
  endforeach()
  if(sources)
    add_library(hexllm_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(hexllm_${name} INTERFACE) # headers only so far
    set(scope INTERFACE)
  endif()
  target_include_directories(hexllm_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  if(sources)
    hexllm_precompile(hexllm_${name} hexllm_pch HEXLLM_PCH_HEADERS "" fmt::fmt nlohmann_json::nlohmann_json)
    hexllm_unity(hexllm_${name} ${sources})
  endif()
  target_link_libraries(hexllm_${name} ${scope} hexllm_options ${ARG_DEPS})
endfunction()

# hexllm_tests(NAME DIR DEPS ... [EXCLUDE regex ...] [ONLY regex])
# One GoogleTest program NAME_tests of all *_test.cc and *_testing.cc in DIR (from the source root), ctest label LABEL
# (default unit).
function(hexllm_tests name dir)
  if(NOT HEXLLM_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "DEPS;EXCLUDE;ONLY" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*_test.cc)
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  foreach(pattern ${ARG_ONLY})
    list(FILTER sources INCLUDE REGEX "${pattern}")
  endforeach()
  if(NOT sources)
    return()
  endif()
  file(GLOB_RECURSE helpers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*_testing.cc)
  add_executable(${name}_tests ${sources} ${helpers})
  hexllm_unity(${name}_tests ${sources} ${helpers})
  target_include_directories(${name}_tests PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name}_tests PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name}_tests PRIVATE ${HEXLLM_TEST_OPTIONS})
  hexllm_precompile(
    ${name}_tests hexllm_test_pch HEXLLM_TEST_PCH_HEADERS "${HEXLLM_TEST_OPTIONS}" fmt::fmt nlohmann_json::nlohmann_json GTest::gtest
    GTest::gmock)
  target_compile_definitions(${name}_tests PRIVATE HEXLLM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name}_tests TEST_PREFIX ${name}. NO_PRETTY_VALUES PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300 DISCOVERY_TIMEOUT 120)
endfunction()

# hexllm_fuzz(NAME SOURCE DEPS ...)
# A fuzz target NAME_fuzz. With HEXLLM_FUZZ it is a libFuzzer program; otherwise the same source is linked with
# fuzz/replay_main.cc and replays fuzz/corpus/NAME as an ordinary test.
function(hexllm_fuzz name source)
  if(NOT HEXLLM_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name}_fuzz ${CMAKE_SOURCE_DIR}/${source})
  target_include_directories(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_DEPS})
  if(NOT TARGET fuzz_targets)
    add_custom_target(fuzz_targets)
  endif()
  add_dependencies(fuzz_targets ${name}_fuzz)
  if(HEXLLM_FUZZ)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc)
    add_test(NAME fuzz.${name} COMMAND ${name}_fuzz ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
endfunction()

# hexllm_flatbuffers(TARGET SCHEMA): generates SCHEMA's C++ header and lets TARGET include it as "<dir>/<name>_generated.h".
function(hexllm_flatbuffers target schema)
  get_filename_component(stem ${schema} NAME_WE)
  get_filename_component(dir ${schema} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/generated/${dir}/${stem}_generated.h)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${FLATC} --cpp --cpp-std c++17 --scoped-enums --warnings-as-errors --no-prefix -o ${CMAKE_BINARY_DIR}/generated/${dir}
            ${CMAKE_SOURCE_DIR}/src/${schema}
    DEPENDS ${CMAKE_SOURCE_DIR}/src/${schema}
    COMMENT "flatc ${schema}")
  add_custom_target(${target}_${stem}_schema DEPENDS ${out})
  add_dependencies(${target} ${target}_${stem}_schema)
  if(NOT TARGET schemas)
    add_custom_target(schemas)
  endif()
  add_dependencies(schemas ${target}_${stem}_schema)
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} SYSTEM ${scope} ${CMAKE_BINARY_DIR}/generated)
endfunction()

# hexllm_recipes(TARGET): compiles src/quant/recipes/*.json and their schema into TARGET as a table.
function(hexllm_recipes target)
  set(dir ${CMAKE_SOURCE_DIR}/src/quant/recipes)
  set(schema ${CMAKE_SOURCE_DIR}/src/quant/recipe.schema.json)
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed_recipes.cmake)
  set(out ${CMAKE_BINARY_DIR}/generated/quant/recipes.cc)
  file(GLOB recipes CONFIGURE_DEPENDS ${dir}/*.json)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DDIR=${dir} -DSCHEMA=${schema} -DOUT=${out} -P ${script}
    DEPENDS ${recipes} ${schema} ${script}
    COMMENT "Embedding recipes"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
