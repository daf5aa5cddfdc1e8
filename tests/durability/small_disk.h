// A disk of a few megabytes that only this process and its children see: a tmpfs in a mount
// namespace of its own, and, without root, in a user namespace of its own. It goes with the
// process, whatever happens to that.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "base/test_folder.h"

namespace detent {

class SmallDisk {
 public:
  /// Requires: the process has one thread. Where the system forbids it, is_mounted() is false.
  explicit SmallDisk(std::size_t mebibytes) {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return;
    if (user != 0) {  // in its namespace it is root; files belong to it as before
      std::ofstream("/proc/self/setgroups") << "deny";
      std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
      std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    const std::string size = "size=" + std::to_string(mebibytes) + "m";
    is_mounted_ = ::mount("none", folder_.path().c_str(), "tmpfs", 0, size.c_str()) == 0;
    how_ = user == 0 ? "tmpfs, mounted as root" : "tmpfs in a user namespace";
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_mounted() const noexcept { return is_mounted_; }
  /// For people: how it was made.
  const std::string& how() const noexcept { return how_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TestFolder folder_;
  bool is_mounted_ = false;
  std::string how_;
};

}  // namespace detent
