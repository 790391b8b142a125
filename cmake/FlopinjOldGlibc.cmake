# What is shipped runs on glibc 2.28 and later, whichever it is built with. Functions that newer
# versions of glibc moved from one library to another, or changed, are linked in their older
# version, which every glibc has: by libraries that hold the names only and
# are looked at before glibc's own. What older ones lack is in runtime/*.cpp.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(_base GLIBC_2.2.5)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(_base GLIBC_2.17)  # the first one there
endif()

# _flopinj_old_names(FILE VERSION NAME...): VERSION is that of x86-64, or empty for the oldest.
function(_flopinj_old_names file)
  set(functions "")
  set(versions "")
  set(version ${_base})
  foreach(word ${ARGN})
    if(word MATCHES "^GLIBC_")
      if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        set(version ${word})
      endif()
      continue()
    endif()
    string(APPEND functions "void ${word}(void) {}\n")
    list(APPEND versions ${version})
    list(APPEND names_of_${version} ${word})
  endforeach()
  list(REMOVE_DUPLICATES versions)
  set(map "")
  foreach(version ${versions})
    list(JOIN names_of_${version} "; " names)
    string(APPEND map "${version} { global: ${names}; };\n")
  endforeach()
  string(REGEX REPLACE "\\.so.*" "" name ${file})
  set(folder ${CMAKE_BINARY_DIR}/old-glibc)
  file(CONFIGURE OUTPUT ${folder}/${name}.cpp CONTENT "extern \"C\" {\n${functions}}\n")
  file(CONFIGURE OUTPUT ${folder}/${name}.map CONTENT "${map}")
  add_library(old_glibc_${name} SHARED ${folder}/${name}.cpp)
  set_target_properties(old_glibc_${name} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${file}
    LIBRARY_OUTPUT_DIRECTORY ${folder} CXX_VISIBILITY_PRESET default)
  target_compile_options(old_glibc_${name} PRIVATE -fno-builtin)
  target_link_options(old_glibc_${name} PRIVATE -nostdlib -Wl,-soname,${file}
    -Wl,--version-script,${folder}/${name}.map)
  add_dependencies(flopinj_static_runtime old_glibc_${name})
  target_link_options(flopinj_static_runtime INTERFACE
    "LINKER:--push-state,--no-as-needed,${folder}/${file},--pop-state")
endfunction()

set(_runtime ${CMAKE_CURRENT_LIST_DIR}/runtime)
add_library(flopinj_newer_glibc OBJECT ${_runtime}/arc4random.cpp ${_runtime}/cond_clockwait.cpp
  ${_runtime}/find_object.cpp ${_runtime}/single_threaded.cpp ${_runtime}/stat.cpp)
add_library(flopinj_start_main OBJECT ${_runtime}/start_main.cpp)
foreach(_objects flopinj_newer_glibc flopinj_start_main)
  target_link_libraries(${_objects} PRIVATE flopinj_warnings)
  target_compile_options(${_objects} PRIVATE -fno-exceptions)  # they need no runtime of C++
endforeach()
target_sources(flopinj_static_runtime INTERFACE $<TARGET_OBJECTS:flopinj_newer_glibc>)

if(_base)
  # Moved to libc in 2.34.
  _flopinj_old_names(libdl.so.2 dladdr dlclose dlerror dlopen dlsym GLIBC_2.3.3 dlinfo)
  # The last five are those of libc and libm: the linker reads one library of a name only, and the
  # loader looks for a name and its version in all of them. What starts a program, since 2.34:
  # runtime/start_main.cpp. Without a wrapper for errors, since 2.29: exp, log, log2, pow.
  _flopinj_old_names(libpthread.so.0 __pthread_key_create pthread_create pthread_detach
    pthread_getspecific pthread_join pthread_key_create pthread_key_delete pthread_mutex_timedlock
    pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init
    pthread_mutexattr_settype pthread_once pthread_rwlock_destroy pthread_rwlock_init
    pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setspecific
    pthread_sigmask __libc_start_main exp log log2 pow GLIBC_2.12 pthread_setname_np)
  target_link_options(flopinj_static_runtime INTERFACE
    LINKER:--push-state,--no-as-needed,-lm,--pop-state)  # which has these four
  target_sources(flopinj_static_runtime INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:flopinj_start_main>>)
  target_link_options(flopinj_static_runtime INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--wrap=__libc_start_main>)
endif()
