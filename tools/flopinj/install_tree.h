// Where our own files are. The tree is relocatable, so everything is found from the running
// program.
#pragma once
#include <filesystem>

namespace flopinj {

// A build folder and an installed tree have the same shape: bin/flopinj, lib/libflopinj.so,
// lib/flopinj/simgpu.
struct InstallTree {
  std::filesystem::path library;  // libflopinj.so, the path to inject
  std::filesystem::path reducer;  // flopreduce
  std::filesystem::path simgpu;   // folder of the simulated libcuda.so.1 and libcupti.so.13
  std::filesystem::path torch;    // folder for PYTHONPATH

  // Absolute and free of symbolic links: CUDA and NVTX must be given the same path, or the library
  // is loaded twice. Throws std::runtime_error if /proc/self/exe cannot be read. The files
  // themselves may be missing.
  static InstallTree of_this_program();
};

}  // namespace flopinj
