// Whose a file or a process at the other end of a socket is.
#pragma once
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace flopinj {

// Whether it is surely the user that this process acts as. Users without a number in our user
// namespace all read as one, the overflow user, who may be us: then it is not sure.
inline bool is_own_user(uid_t user) {
  if (user != geteuid()) return false;
  uid_t overflow = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  if (user != overflow) return true;
  uint64_t inside = 1, outside = 1, count = 0;  // of the first namespace: all users, as they are
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == 0xFFFFFFFF;
}

// Root reads everything anyway.
inline bool is_own_user_or_root(uid_t user) { return user == 0 || is_own_user(user); }

// In a folder that others write to, any of them can make a file by a name that we are going to
// write to: a regular file must be ours, anything else ours or root's. /dev/null has no reader, and
// in a container it may have no owner.
inline bool may_write_to(const struct stat& file) {
  if (S_ISREG(file.st_mode)) return is_own_user(file.st_uid);
  constexpr unsigned kMemory = 1, kNull = 3;
  if (S_ISCHR(file.st_mode) && file.st_rdev == makedev(kMemory, kNull)) return true;
  return is_own_user_or_root(file.st_uid);
}

}  // namespace flopinj
