#include "tests/system/truth/machine_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "tests/system/process.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{10};

struct ProcessTime {
  pid_t parent = 0;
  double s = 0;  // with the children that it has waited for
};

// Empty for one that has just gone.
std::string stat_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  // The name in parentheses may contain anything.
  const auto name_end = line.rfind(')');
  return name_end == line.npos ? "" : line.substr(name_end + 1);
}

std::map<pid_t, ProcessTime> processes() {
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::map<pid_t, ProcessTime> all;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    std::istringstream stat(pid > 0 ? stat_of(entry.path()) : "");
    char state = 0;
    ProcessTime process;
    if (!(stat >> state >> process.parent)) continue;
    double value = 0;
    for (int field = 5; field <= 17 && stat >> value; ++field)
      if (field >= 14) process.s += value / ticks;  // utime, stime, cutime, cstime
    all[pid] = process;
  }
  return all;
}

// The parent of the kernel's threads; -1 in a container, which does not show them.
pid_t kernel_parent() {
  return read_text("/proc/2/comm") == "kthreadd\n" ? 2 : -1;
}

double own_cpu_s() {
  const auto all = processes();
  const pid_t kernel = kernel_parent();
  const auto is_own = [&](pid_t pid) {
    while (pid != getpid() && pid != kernel) {
      const auto found = all.find(pid);
      if (found == all.end()) return false;
      pid = found->second.parent;
    }
    return true;
  };
  double sum = 0;
  for (const auto& [pid, process] : all)
    if (is_own(pid)) sum += process.s;
  return sum;
}

struct DiskLook {
  uint64_t ended = 0;
  uint64_t under_way = 0;
};

DiskLook look(const fs::path& stat) {
  std::ifstream file(stat);
  uint64_t fields[17] = {};  // as Documentation/block/stat.rst has them
  for (auto& field : fields) file >> field;
  return {fields[0] + fields[4] + fields[11] + fields[15], fields[8]};
}

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// By the idle time, which kernels that stop their tick when idle measure: they only sample who is
// busy, a hundred times a second.
CpuTime CpuTime::now() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  CpuTime time;
  time.all_s = static_cast<double>(system_clock().boot_ns()) * 1e-9 *
               static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  time.busy_s = time.all_s - (idle + iowait) / ticks;
  time.stolen_s = steal / ticks;
  time.own_s = own_cpu_s();
  return time;
}

DiskWatch::DiskWatch(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return;
  const fs::path stat =
      fmt::format("/sys/dev/block/{}:{}/stat", major(info.st_dev), minor(info.st_dev));
  if (fs::exists(stat))
    thread_ = std::jthread([this, stat](const std::stop_token& stop) { watch(stop, stat); });
}

void DiskWatch::watch(const std::stop_token& stop, const fs::path& stat) {
  DiskLook before = look(stat);
  int64_t still_since_ms = now_ms();
  bool known = false;  // the present standstill is in the list
  for (; !stop.stop_requested(); std::this_thread::sleep_for(kLook)) {
    const DiskLook seen = look(stat);
    const int64_t at_ms = now_ms();
    const bool still = before.under_way > 0 && seen.under_way > 0 && seen.ended == before.ended;
    before = seen;
    if (!still) {
      still_since_ms = at_ms;
      known = false;
    } else if (at_ms - still_since_ms >= kLeastMs) {
      const std::lock_guard lock(mutex_);
      if (!known) standstills_.push_back({still_since_ms, at_ms});
      standstills_.back().to_ms = at_ms;
      known = true;
    }
  }
}

std::vector<Standstill> DiskWatch::standstills() const {
  const std::lock_guard lock(mutex_);
  return standstills_;
}

}  // namespace tierpilot::test
