// A disk of a few megabytes that only this process and its children can see. It is a tmpfs in a
// private mount namespace. Without root, it is also in a private user namespace. The disk
// disappears when the process ends, even after a crash.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "base/testing/test_folder.h"

namespace detent {

class SmallDisk {
 public:
  /// Requires: the process has only one thread. If the system forbids the mount, is_mounted() is
  /// false.
  explicit SmallDisk(std::size_t mebibytes) {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return;
    if (user != 0) {  // root in the new namespace; the owner of files stays the same
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
  /// How the disk was made, as text for the test output.
  const std::string& how() const noexcept { return how_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TestFolder folder_;
  bool is_mounted_ = false;
  std::string how_;
};

}  // namespace detent
