# FindLibTorch: imported target LibTorch::LibTorch from LIBTORCH_ROOT, a directory that holds
# include/ and lib/ (a LibTorch archive, or site-packages/torch of a Python environment). Without one,
# the private environment that installer/setup.sh made is used.
#
# Links libtorch_cpu and libc10 only: the programs load libtorch_cuda at start-up when it is wanted
# and there, so one build serves machines with and without a GPU. (The wheel's own TorchConfig.cmake
# wants a CUDA toolkit.)
set(LIBTORCH_ROOT "$ENV{LIBTORCH_ROOT}" CACHE PATH "LibTorch: directory with include/ and lib/")
set(_libtorch_root "${LIBTORCH_ROOT}")
if(NOT _libtorch_root)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../setup.sh --print-root
    OUTPUT_VARIABLE _libtorch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

# Looked up afresh each time, so that another LIBTORCH_ROOT is taken without a new build folder.
unset(LibTorch_INCLUDE_DIR CACHE)
unset(LibTorch_CPU_LIBRARY CACHE)
unset(LibTorch_C10_LIBRARY CACHE)
if(_libtorch_root)
  find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/types.h
    PATHS ${_libtorch_root}/include NO_DEFAULT_PATH)
  find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${_libtorch_root}/lib NO_DEFAULT_PATH)
  find_library(LibTorch_C10_LIBRARY c10 PATHS ${_libtorch_root}/lib NO_DEFAULT_PATH)
endif()

if(LibTorch_INCLUDE_DIR)
  # Newer releases moved the numbers to headeronly/.
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${LibTorch_INCLUDE_DIR}/${_header} AND NOT LibTorch_VERSION)
      file(STRINGS ${LibTorch_INCLUDE_DIR}/${_header} _numbers
        REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE "#define TORCH_VERSION_[A-Z]+ " "" _numbers "${_numbers}")
      string(REPLACE ";" "." LibTorch_VERSION "${_numbers}")
    endif()
  endforeach()
endif()

if(_libtorch_root)
  set(_libtorch_hint "LIBTORCH_ROOT=${_libtorch_root} must hold include/ and lib/ of LibTorch 2.4 or newer")
else()
  set(_libtorch_hint "run installer/setup.sh, or give -DLIBTORCH_ROOT=DIR (DIR/include, DIR/lib)")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${_libtorch_hint}")

if(LibTorch_FOUND)
  # Wheels before 2.6 use the old std::string, which no other library here does.
  file(STRINGS ${LibTorch_C10_LIBRARY} _new_strings REGEX "c105Error.*__cxx11" LIMIT_COUNT 1)
  if(NOT _new_strings)
    message(FATAL_ERROR "${LibTorch_C10_LIBRARY} is built for the pre-C++11 ABI: take LibTorch 2.6 "
      "or newer, or the archive named cxx11-abi")
  endif()
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::c10 UNKNOWN IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::LibTorch UNKNOWN IMPORTED)
  set_target_properties(LibTorch::LibTorch PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
  # What libtorch_cpu needs itself (CUPTI, the CUDA runtime) it finds at load time, through its own
  # rpath; the linker need not see it.
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
endif()
