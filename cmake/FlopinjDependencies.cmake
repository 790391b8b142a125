# What the build needs from elsewhere. Each is found once, here, and has one target name in the rest
# of the tree.
find_package(Threads REQUIRED)
find_package(CudaHeaders REQUIRED)  # flopinj::cuda_headers

find_package(Protobuf REQUIRED)     # tools and tests only; never in libflopinj.so
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_builder.hpp REQUIRED)
add_library(flopinj::protozero INTERFACE IMPORTED)
target_include_directories(flopinj::protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})

# Header-only spdlog and fmt: the distribution's compiled ones are shared libraries, which an
# injected library must not need.
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
add_library(flopinj::spdlog INTERFACE IMPORTED)
target_link_libraries(flopinj::spdlog INTERFACE spdlog::spdlog_header_only fmt::fmt-header-only
  Threads::Threads)

# The collector's hash (XXH3), used header-only.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(flopinj::xxhash INTERFACE IMPORTED)
target_include_directories(flopinj::xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_compile_definitions(flopinj::xxhash INTERFACE XXH_INLINE_ALL)

# The demangler; static only.
find_path(LIBIBERTY_INCLUDE_DIR libiberty/demangle.h REQUIRED)
find_library(LIBIBERTY_LIBRARY libiberty.a REQUIRED)
add_library(flopinj::libiberty INTERFACE IMPORTED)
target_include_directories(flopinj::libiberty SYSTEM INTERFACE ${LIBIBERTY_INCLUDE_DIR})
target_link_libraries(flopinj::libiberty INTERFACE ${LIBIBERTY_LIBRARY})

# Regular expressions whose time is linear in the text and whose memory is bounded: patterns come
# from users, text from traces. Static only. (Releases from June 2023 on need Abseil too; neither
# Debian 12 nor Ubuntu 24.04 has one.)
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY libre2.a REQUIRED)
add_library(flopinj::re2 INTERFACE IMPORTED)
target_include_directories(flopinj::re2 SYSTEM INTERFACE ${RE2_INCLUDE_DIR})
target_link_libraries(flopinj::re2 INTERFACE ${RE2_LIBRARY} Threads::Threads)

# The database of a report; static, as flopreduce has to run where it is missing.
find_path(SQLITE3_INCLUDE_DIR sqlite3.h REQUIRED)
find_library(SQLITE3_LIBRARY libsqlite3.a REQUIRED)
add_library(flopinj::sqlite3 INTERFACE IMPORTED)
target_include_directories(flopinj::sqlite3 SYSTEM INTERFACE ${SQLITE3_INCLUDE_DIR})
target_link_libraries(flopinj::sqlite3 INTERFACE ${SQLITE3_LIBRARY} Threads::Threads
  ${CMAKE_DL_LIBS} m)

# Compressed input and output; static for the same reason.
find_path(ZLIB_INCLUDE_DIR zlib.h REQUIRED)
find_library(ZLIB_LIBRARY libz.a REQUIRED)
add_library(flopinj::zlib INTERFACE IMPORTED)
target_include_directories(flopinj::zlib SYSTEM INTERFACE ${ZLIB_INCLUDE_DIR})
target_link_libraries(flopinj::zlib INTERFACE ${ZLIB_LIBRARY})
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY libzstd.a REQUIRED)
add_library(flopinj::zstd INTERFACE IMPORTED)
target_include_directories(flopinj::zstd SYSTEM INTERFACE ${ZSTD_INCLUDE_DIR})
target_link_libraries(flopinj::zstd INTERFACE ${ZSTD_LIBRARY})

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

if(FLOPINJ_TESTS)
  # Debian 12 has Catch2 version 2 (header only), Ubuntu 24.04 version 3 (a library).
  find_package(Catch2 REQUIRED)
  add_library(flopinj_catch2 INTERFACE)
  if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
    target_link_libraries(flopinj_catch2 INTERFACE Catch2::Catch2)
    target_compile_definitions(flopinj_catch2 INTERFACE FLOPINJ_CATCH2_V3)
  else()
    target_link_libraries(flopinj_catch2 INTERFACE Catch2::Catch2)
  endif()
endif()
if(FLOPINJ_BENCH)
  find_package(benchmark REQUIRED)
endif()
