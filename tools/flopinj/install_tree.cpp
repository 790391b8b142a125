#include "install_tree.h"

#include <stdexcept>
#include <system_error>

namespace flopinj {

namespace fs = std::filesystem;

InstallTree InstallTree::of_this_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw std::runtime_error("cannot read /proc/self/exe: " + error.message());
  const fs::path root = self.parent_path().parent_path();
  return {.library = fs::weakly_canonical(root / "lib" / "libflopinj.so"),
          .reducer = root / "bin" / "flopreduce",
          .simgpu = fs::weakly_canonical(root / "lib" / "flopinj" / "simgpu"),
          .torch = fs::weakly_canonical(root / "lib" / "flopinj" / "torch")};
}

}  // namespace flopinj
