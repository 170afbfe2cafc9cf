// Made-up processes in /proc, and file descriptors from process to process.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/sysroot.h"

namespace tierpilot {

struct ProcEntry {
  uid_t uid = ::getuid();
  gid_t gid = ::getgid();
  uint64_t capabilities = 0;
  uint64_t start_ticks = 1;
  bool has_memory = true;
  std::string uid_map = "         0          0 4294967295";
};

inline void write_proc_file(const Sysroot& sysroot, pid_t pid, const std::string& file,
                            const std::string& text) {
  const auto path = sysroot.resolve(fmt::format("/proc/{}/{}", pid, file));
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

inline void write_proc_entry(const Sysroot& sysroot, pid_t pid, const ProcEntry& entry) {
  const auto ids = [](auto id) { return fmt::format("{0}\t{0}\t{0}\t{0}", id); };
  write_proc_file(
      sysroot, pid, "status",
      fmt::format("Name:\tx\\nUid:\nUid:\t{}\nGid:\t{}\n{}CapPrm:\t{:016x}\nCapEff:\t{:016x}\n",
                  ids(entry.uid), ids(entry.gid), entry.has_memory ? "VmSize:\t 100 kB\n" : "",
                  entry.capabilities, entry.capabilities));
  write_proc_file(sysroot, pid, "stat",
                  fmt::format("{} (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 {} 20\n",
                              pid, entry.start_ticks));
  write_proc_file(sysroot, pid, "uid_map", entry.uid_map + "\n");
}

inline bool send_fd(int channel, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)]{};
  msghdr message{
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(channel, &message, MSG_NOSIGNAL) == 1;
}

inline int receive_fd(int channel) {
  char byte = 0;
  iovec data{&byte, 1};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)]{};
  msghdr message{
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (::recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message)) return -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

}  // namespace tierpilot
