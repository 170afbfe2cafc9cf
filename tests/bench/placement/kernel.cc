#include "tests/bench/placement/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <numaif.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "base/unique_fd.h"

namespace tierpilot::bench {
namespace {

constexpr const char* kBalancing = "/proc/sys/kernel/numa_balancing";
constexpr const char* kDemotion = "/sys/kernel/mm/numa/demotion_enabled";

Status write_file(const Sysroot& sysroot, const std::string& path, const std::string& value) {
  const UniqueFd file(::open(sysroot.resolve(path).c_str(), O_WRONLY | O_CLOEXEC));
  if (!file ||
      ::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return fail_errno(errno, fmt::format("'{}' to '{}'", value, path));
  return {};
}

// A little memory on the node, in a process that waits for a byte on `gate`.
[[noreturn]] void be_reclaimed(int node, int gate) {
  constexpr size_t kBytes = 4 << 20;
  const unsigned long mask = 1UL << node;
  ::set_mempolicy(MPOL_BIND, &mask, 64);
  char go = 0;
  (void)!::read(gate, &go, 1);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  (void)!::write(gate, memory == MAP_FAILED ? "-" : "+", 1);
  ::pause();
  ::_exit(0);
}

// kswapd gives a node up for good after 16 runs that freed nothing, as without demotion or swap
// ("node_unreclaimable" in /proc/zoneinfo). Any reclaim that frees something makes it try again: of
// a cgroup, since that can be asked for.
Status revive_kswapd(const Sysroot& sysroot, int node) {
  const std::string group = "/sys/fs/cgroup/placement-bench";
  int gate[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0)
    return fail_errno(errno, "socketpair");
  const UniqueFd ours(gate[0]), theirs(gate[1]);
  (void)write_file(sysroot, "/sys/fs/cgroup/cgroup.subtree_control", "+memory");
  ::mkdir(sysroot.resolve(group).c_str(), 0755);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child == 0) be_reclaimed(node, theirs.get());
  auto status = write_file(sysroot, group + "/cgroup.procs", std::to_string(child));
  char answer = '+';
  (void)!::write(ours.get(), &answer, 1);
  (void)!::read(ours.get(), &answer, 1);
  if (status) status = write_file(sysroot, group + "/memory.reclaim", "1M");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::rmdir(sysroot.resolve(group).c_str());
  return status;
}

}  // namespace

KernelTiering::KernelTiering(const Sysroot& sysroot, std::string balancing, std::string demotion)
    : sysroot_(sysroot), balancing_(std::move(balancing)), demotion_(std::move(demotion)) {}

Result<std::unique_ptr<KernelTiering>> KernelTiering::enable(const Sysroot& sysroot,
                                                             int fast_node) {
  const auto balancing = sysroot.read(kBalancing), demotion = sysroot.read(kDemotion);
  for (const auto* setting : {&balancing, &demotion})
    if (!*setting)
      return fail(ErrorCode::kUnavailable,
                  "unavailable: no memory tiering in this kernel: " + setting->error().message);
  std::unique_ptr<KernelTiering> tiering(new KernelTiering(sysroot, *balancing, *demotion));
  if (auto status = write_file(sysroot, kDemotion, "true"); !status)
    return tl::unexpected(status.error());
  if (auto status = revive_kswapd(sysroot, fast_node); !status)
    return tl::unexpected(status.error());
  if (auto status = write_file(sysroot, kBalancing, "2"); !status)
    return tl::unexpected(status.error());
  return tiering;
}

KernelTiering::~KernelTiering() {
  (void)write_file(sysroot_, kBalancing, balancing_);
  (void)write_file(sysroot_, kDemotion, demotion_);
}

KernelCounters KernelCounters::operator-(const KernelCounters& before) const {
  return {migrated_pages - before.migrated_pages, promoted_pages - before.promoted_pages,
          demoted_pages - before.demoted_pages, helper_cpu_s - before.helper_cpu_s};
}

CpuTimes cpu_times(const Sysroot& sysroot, int pid) {
  const auto stat = sysroot.read(fmt::format("/proc/{}/stat", pid)).value_or("");
  const auto comm_end = stat.rfind(')');
  unsigned long user = 0, system = 0;
  if (comm_end == std::string::npos ||
      std::sscanf(stat.c_str() + comm_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    return {};
  const double ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {static_cast<double>(user) / ticks_per_s, static_cast<double>(system) / ticks_per_s};
}

KernelCounters read_kernel_counters(const Sysroot& sysroot) {
  KernelCounters counters;
  std::istringstream vmstat(sysroot.read("/proc/vmstat").value_or(""));
  std::string name;
  for (uint64_t value = 0; vmstat >> name >> value;) {
    if (name == "pgmigrate_success") counters.migrated_pages = value;
    if (name == "pgpromote_success") counters.promoted_pages = value;
    if (name.starts_with("pgdemote_")) counters.demoted_pages += value;
  }
  for (const auto& pid : sysroot.list("/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto comm = sysroot.read("/proc/" + pid + "/comm").value_or("");
    if (comm.starts_with("kswapd") || comm.starts_with("kcompactd") || comm.starts_with("kdamond"))
      counters.helper_cpu_s += cpu_times(sysroot, std::stoi(pid)).system_s;
  }
  return counters;
}

}  // namespace tierpilot::bench
