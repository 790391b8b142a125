// Runs the real flopinj from a tree of its own, as an installed one.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

struct Outcome {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;
  int pid = 0;
  std::string out, err;
};

// A temporary folder with bin/flopinj, lib/libflopinj.so (a stand-in) and
// lib/flopinj/simgpu/libcuda.so.1 (an empty file).
class InstalledTree {
 public:
  // `name` is the tree's folder inside the temporary one.
  explicit InstalledTree(const std::string& name = "tree");
  ~InstalledTree();
  InstalledTree(const InstalledTree&) = delete;
  InstalledTree& operator=(const InstalledTree&) = delete;

  std::filesystem::path temporary() const { return temporary_; }
  std::filesystem::path root() const { return root_; }
  std::filesystem::path program() const { return root_ / "bin" / "flopinj"; }
  std::filesystem::path library() const { return root_ / "lib" / "libflopinj.so"; }
  std::filesystem::path simgpu() const { return root_ / "lib" / "flopinj" / "simgpu"; }

  // Runs flopinj in `temporary()` with PATH and `environment` ("NAME=value") and nothing else of
  // ours.
  Outcome run(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment = {}) const;

 private:
  std::filesystem::path temporary_, root_;
};

Outcome run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment,
                    const std::filesystem::path& folder);

// True if `text` has `line` as a whole line.
bool has_line(const std::string& text, const std::string& line);
