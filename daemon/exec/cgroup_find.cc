#include "daemon/exec/cgroup_find.h"

#include <fmt/format.h>
#include <mntent.h>
#include <sys/xattr.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> unavailable(std::string why) {
  return fail(ErrorCode::kUnavailable, std::move(why));
}

// The v2 mount: /sys/fs/cgroup, or /sys/fs/cgroup/unified beside v1 controllers ("hybrid").
Result<fs::path> find_mount(const Sysroot& sysroot) {
  const auto table = sysroot.resolve("/proc/self/mounts");
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent(table.c_str(), "re"), ::endmntent);
  if (!mounts) return fail_errno(errno, table.string());
  mntent entry{};
  std::array<char, 4096> text;
  while (::getmntent_r(mounts.get(), &entry, text.data(), text.size())) {
    if (std::string_view(entry.mnt_type) == "cgroup2") return fs::path(entry.mnt_dir);
  }
  return unavailable("no cgroup v2 hierarchy is mounted");
}

// "0::/system.slice/tierpilotd.service" among the lines of v1 hierarchies.
Result<std::string> own_path(const Sysroot& sysroot) {
  auto text = sysroot.read("/proc/self/cgroup");
  if (!text) return tl::unexpected(text.error());
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return unavailable("the daemon is in no cgroup v2");
}

// systemd marks delegated cgroups with this attribute (user.* since 251, trusted.* for root).
bool is_delegated(const fs::path& directory) {
  for (const char* name : {"user.delegate", "trusted.delegate"}) {
    char value = 0;
    if (::getxattr(directory.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

Result<CgroupHome> configured_home(const Sysroot& sysroot, const fs::path& mount,
                                   const std::string& configured) {
  const fs::path relative = fs::path(configured).relative_path().lexically_normal();
  if (relative.empty() || relative == "." || *relative.begin() == "..")
    return unavailable(fmt::format("cgroup '{}' is not one that a daemon can own", configured));
  const auto directory = sysroot.resolve(mount / relative);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return unavailable(
        fmt::format("{}: cannot be created: {}", directory.string(), error.message()));
  return CgroupHome{directory, false};
}

}  // namespace

Result<CgroupHome> find_cgroup_home(const Sysroot& sysroot, const std::string& configured) {
  auto mount = find_mount(sysroot);
  if (!mount) return tl::unexpected(mount.error());
  if (!configured.empty()) return configured_home(sysroot, *mount, configured);
  auto own = own_path(sysroot);
  if (!own) return tl::unexpected(own.error());
  const auto directory = sysroot.resolve(*mount / fs::path(*own).relative_path());
  if (own->starts_with("/..") || !fs::exists(directory / "cgroup.procs"))
    return unavailable(
        fmt::format("the daemon's cgroup {} lies outside of the mounted hierarchy", *own));
  if (!is_delegated(directory))
    return unavailable(fmt::format(
        "the daemon's cgroup {} is not delegated to it: set Delegate=yes in its systemd unit, or "
        "name a cgroup of its own in its configuration",
        *own));
  return CgroupHome{directory, true};
}

}  // namespace tierpilot
