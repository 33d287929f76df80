# mla_add_test(SOURCE LIBRARY): builds and registers one Qt Test executable.
# The first folder below tests/ is its label; the name adds another: tst_real_* runs on the
# SmolLM2-135M checkpoint, tst_gpu_* on a GPU, tst_parity_* beside another program on much input.
function(mla_add_test source library)
  cmake_path(GET source STEM name)
  file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests ${source})
  string(REGEX REPLACE "/.*" "" labels ${relative})
  foreach(extra real gpu parity)
    if(name MATCHES "^tst_${extra}_")
      list(APPEND labels ${extra})
    endif()
  endforeach()
  if(TARGET ${name})
    # Two folders may test things of the same name.
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set(name ${folder}_${name})
  endif()

  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${library} Qt6::Test)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    MLA_TEST_DATA="${CMAKE_SOURCE_DIR}/tests" MLA_RESOURCES="${CMAKE_SOURCE_DIR}/resources"
    MLA_BIN="${CMAKE_BINARY_DIR}/bin")
  if(library STREQUAL "mla_core")
    # Qt's `slots` and `emit` macros break torch's headers.
    target_compile_definitions(${name} PRIVATE QT_NO_KEYWORDS)
    mla_use_torch_header(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # moc by hand, without include directories: AUTOMOC would have it read LibTorch's headers, 20 s a
  # test, for a class whose macros moc knows by itself.
  cmake_path(GET source STEM stem)
  set(moc ${CMAKE_CURRENT_BINARY_DIR}/moc/${name}/${stem}.moc)
  qt_generate_moc(${source} ${moc})
  target_sources(${name} PRIVATE ${moc})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/moc/${name})

  add_test(NAME ${name} COMMAND ${name})
  # A test that could only skip says so in Qt Test's totals; ctest then lists it as skipped.
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 1500
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;QTEST_FUNCTION_TIMEOUT=1400000"
    SKIP_REGULAR_EXPRESSION "Totals: [0-2] passed, 0 failed, [1-9][0-9]* skipped")
  if(labels MATCHES "unit|golden" AND NOT labels MATCHES "real|gpu|parity")
    # Many at a time: one thread each.
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT OMP_NUM_THREADS=1)
  else()
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
