// A small file that others read while it is written anew: they see all of it or what was before.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

namespace flopinj {

// What was written last, so that a file which another process has put in its place is known.
struct WholeFile {
  std::string name;
  dev_t device = 0;
  ino_t inode = 0;

  // 0, or errno's, and the file is as it was. In a folder that others write to, a file or link of
  // theirs may have the name beside: it is not written to.
  int write(std::string_view text);
  // Where it is ours still.
  void remove() const;
};

}  // namespace flopinj
