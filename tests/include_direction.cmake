# Folders of src depend in one direction, and only src/kernels knows oneDNN.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME include_direction COMMAND Python3::Interpreter
  ${CMAKE_CURRENT_LIST_DIR}/include_direction.py ${PROJECT_SOURCE_DIR}/src)
add_test(NAME include_direction_finds_offences COMMAND Python3::Interpreter
  ${CMAKE_CURRENT_LIST_DIR}/include_direction.py --self-test)
set_tests_properties(include_direction include_direction_finds_offences PROPERTIES LABELS fast TIMEOUT 60)
