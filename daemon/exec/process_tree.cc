#include "daemon/exec/process_tree.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>

#include "base/sysroot.h"

namespace tierpilot {
namespace {

const std::string kOwnChildren = "/proc/thread-self/children";
// A task that forks or starts threads without end must not hold up its daemon.
constexpr size_t kMostProcesses = 10'000, kMostThreads = 20'000;

std::vector<std::string> threads_of(pid_t process) {
  return Sysroot().list(fmt::format("/proc/{}/task", process));
}

// "12 (a name) with) brackets) S 7 ...": the parent follows the state, after the last bracket.
pid_t parent_from_stat(const std::string& stat) {
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
  return parent;
}

// X: it is gone.
char state_of(pid_t process) {
  const auto stat = Sysroot().read(fmt::format("/proc/{}/stat", process));
  const size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end == std::string::npos || name_end + 2 >= stat->size() ? 'X'
                                                                       : (*stat)[name_end + 2];
}

// Takes the threads that it looks at from `threads_left`.
std::vector<pid_t> children_of(pid_t process, size_t& threads_left) {
  std::vector<pid_t> children;
  for (const auto& thread : threads_of(process)) {
    if (threads_left == 0) break;
    --threads_left;
    const auto file = fmt::format("/proc/{}/task/{}/children", process, thread);
    const auto text = Sysroot().read(file);
    if (!text && text.error().code == ErrorCode::kNotFound && !Sysroot().exists(kOwnChildren))
      return children_from_stat(process).value_or(std::vector<pid_t>());
    if (!text) continue;  // the thread is gone
    std::istringstream in(*text);
    for (pid_t child; in >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

std::optional<std::vector<pid_t>> children_from_stat(pid_t process) {
  auto all = processes();
  if (all.empty()) return std::nullopt;  // this process at least is there
  std::erase_if(all, [&](pid_t each) { return parent_of(each) != process; });
  return all;
}

std::vector<pid_t> processes() {
  std::vector<pid_t> all;
  for (const auto& name : Sysroot().list("/proc")) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc{} && end == name.data() + name.size()) all.push_back(pid);
  }
  return all;
}

std::vector<pid_t> descendants(pid_t root) {
  size_t threads_left = kMostThreads;
  std::vector<pid_t> found = children_of(root, threads_left);
  for (size_t i = 0; i < found.size() && found.size() < kMostProcesses; ++i) {
    const auto more = children_of(found[i], threads_left);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

pid_t parent_of(pid_t process) {
  const auto stat = Sysroot().read(fmt::format("/proc/{}/stat", process));
  return stat ? parent_from_stat(*stat) : 0;
}

bool stands_still(pid_t process) {
  return std::string_view("TtZX").find(state_of(process)) != std::string_view::npos;
}

bool has_ended(pid_t process) {
  return std::string_view("ZX").find(state_of(process)) != std::string_view::npos;
}

std::optional<int64_t> cpu_time_ns(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

int64_t run_delay_ns(pid_t process) {
  int64_t sum_ns = 0;
  for (const auto& thread : threads_of(process)) {
    const auto text = Sysroot().read(fmt::format("/proc/{}/task/{}/schedstat", process, thread));
    std::istringstream in(text.value_or(""));
    int64_t ran_ns = 0, waited_ns = 0;  // and how often it ran
    if (in >> ran_ns >> waited_ns) sum_ns += waited_ns;
  }
  return sum_ns;
}

Status set_affinity(pid_t process, const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &mask);
  for (const auto& thread : threads_of(process)) {
    pid_t id = 0;
    std::from_chars(thread.data(), thread.data() + thread.size(), id);
    if (id > 0 && ::sched_setaffinity(id, sizeof mask, &mask) != 0 && errno != ESRCH)
      return fail_errno(errno, fmt::format("process {} on CPUs {}", process, format_id_list(cpus)));
  }
  return {};
}

int64_t ended_children_ns(pid_t process) {
  const auto stat = Sysroot().read(fmt::format("/proc/{}/stat", process));
  const size_t name_end = stat ? stat->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::istringstream in(stat->substr(name_end + 2));
  std::string skipped;
  for (int field = 3; field < 16; ++field) in >> skipped;  // up to cutime, see proc(5)
  int64_t user = 0, system = 0;
  in >> user >> system;
  return in ? (user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)) : 0;
}

void CpuMeter::look() {
  looks_.look([this] {
    living_ = descendants(root_);
    ended_ns_ = ended_children_ns(root_);
    for (const pid_t process : living_) ended_ns_ += ended_children_ns(process);
    sum_up();
  });
}

void CpuMeter::glance() {
  glances_.look([this] { sum_up(); });
}

void CpuMeter::sum_up() {
  int64_t total = ended_ns_;
  for (const pid_t process : living_) total += cpu_time_ns(process).value_or(0);
  used_ns_ = std::max(used_ns_, total);
}

}  // namespace tierpilot
