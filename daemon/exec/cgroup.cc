#include "daemon/exec/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <thread>

#include "base/unique_fd.h"
#include "daemon/exec/cgroup_find.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCpuPeriodUs = 100'000;
constexpr std::string_view kTaskPrefix = "task-";

Status write_file(const fs::path& path, std::string_view text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
    return fail_errno(errno, fmt::format("{}: writing '{}'", path.string(), text));
  return {};
}

std::string read_or_empty(const fs::path& path) {
  return Sysroot().read(path).value_or("");
}

// The number after `key` in "user_usec 12\nsystem_usec 3".
std::optional<int64_t> value_of(const std::string& text, std::string_view key) {
  std::istringstream words(text);
  std::string name;
  int64_t value = 0;
  while (words >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// Sums "rbytes=4096" over the lines of io.stat, one per device that was used.
uint64_t sum_of(const std::string& text, std::string_view key) {
  std::istringstream words(text);
  uint64_t sum = 0;
  for (std::string word; words >> word;) {
    if (word.starts_with(key)) sum += std::strtoull(word.c_str() + key.size(), nullptr, 10);
  }
  return sum;
}

std::optional<int64_t> us_to_ns(std::optional<int64_t> us) {
  return us ? std::optional(*us * 1000) : std::nullopt;
}

// Each controller on its own, so that one that is refused does not cost the others.
LimitState enable(const fs::path& group, const std::string& controller) {
  std::istringstream words(read_or_empty(group / "cgroup.controllers"));
  const bool there = std::find(std::istream_iterator<std::string>(words), {}, controller) !=
                     std::istream_iterator<std::string>();
  if (!there)
    return {false, fmt::format("controller '{}' is not offered by {}: its parent does not pass it "
                               "on, or cgroup v1 holds it",
                               controller, group.string())};
  auto status = write_file(group / "cgroup.subtree_control", "+" + controller);
  return status ? LimitState{true, {}} : LimitState{false, status.error().message};
}

Status move_into_leaf(const fs::path& group) {
  std::error_code error;
  fs::create_directory(group / "daemon", error);
  if (error) return fail_errno(error.value(), (group / "daemon").string());
  return write_file(group / "daemon/cgroup.procs", "0");
}

void remove_leftovers(const fs::path& group) {
  for (const auto& name : Sysroot().list(group)) {
    if (!name.starts_with(kTaskPrefix)) continue;
    const TaskCgroup left(group / name);
    spdlog::warn("cgroup {}: left by an earlier daemon, ending what runs in it", name);
    (void)left.kill();
    if (auto status = left.remove(); !status) spdlog::warn("{}", status.error().message);
  }
}

Status set_memory_limit(const fs::path& group, uint64_t bytes) {
  if (auto status = write_file(group / "memory.max", std::to_string(bytes)); !status) return status;
  // Without these a task would swap instead of ending, or lose one process and limp on. A kernel
  // without swap accounting lacks the first.
  if (fs::exists(group / "memory.swap.max")) (void)write_file(group / "memory.swap.max", "0");
  return write_file(group / "memory.oom.group", "1");
}

// What a task swaps to a NUMA node is charged to its cgroup as well.
uint64_t with_swap_memory(uint64_t limit_bytes, const TaskLaunch& task) {
  return limit_bytes + std::min(task.swap_memory_bytes, UINT64_MAX - limit_bytes);
}

// A task can undo its affinity mask, but neither its cpuset nor, in its place, a quota.
Status confine(const TaskCgroup& group, const LimitsReport& limits, const std::vector<int>& cpus) {
  if (limits.cpuset.on) return group.set_cpus(limits, cpus);
  if (!limits.cpu.on) return {};
  return group.set_cpu_quota(static_cast<double>(cpus.size()));
}

}  // namespace

Status TaskCgroup::enter() const {
  return write_file(directory_ / "cgroup.procs", "0");
}

Status TaskCgroup::kill() const {
  return write_file(directory_ / "cgroup.kill", "1");
}

Status TaskCgroup::set_cpus(const LimitsReport& limits, const std::vector<int>& cpus) const {
  if (!limits.cpuset.on) return {};
  return write_file(directory_ / "cpuset.cpus", format_id_list(cpus));
}

Status TaskCgroup::set_cpu_quota(double cores) const {
  constexpr int64_t kLeastUs = 1000;  // the kernel takes no less
  const auto quota = static_cast<int64_t>(std::llround(cores * kCpuPeriodUs));
  return write_file(directory_ / "cpu.max",
                    fmt::format("{} {}", std::max(quota, kLeastUs), kCpuPeriodUs));
}

Status TaskCgroup::set_frozen(bool frozen) const {
  return write_file(directory_ / "cgroup.freeze", frozen ? "1" : "0");
}

uint64_t TaskCgroup::id() const {
  struct stat info {};
  return ::stat(directory_.c_str(), &info) == 0 ? info.st_ino : 0;
}

CgroupFigures TaskCgroup::figures() const {
  CgroupFigures figures;
  const auto cpu = read_or_empty(directory_ / "cpu.stat");
  figures.cpu_user_ns = us_to_ns(value_of(cpu, "user_usec"));
  figures.cpu_system_ns = us_to_ns(value_of(cpu, "system_usec"));
  if (auto peak = Sysroot().read_int(directory_ / "memory.peak"))
    figures.peak_bytes = static_cast<uint64_t>(*peak);
  if (auto io = Sysroot().read(directory_ / "io.stat")) {
    figures.read_bytes = sum_of(*io, "rbytes=");
    figures.written_bytes = sum_of(*io, "wbytes=");
  }
  const auto memory = read_or_empty(directory_ / "memory.events");
  figures.hit_memory_limit = value_of(memory, "oom").value_or(0) > 0;
  figures.oom_killed = value_of(memory, "oom_kill").value_or(0) > 0;
  return figures;
}

Status TaskCgroup::remove() const {
  // A killed process stays in its cgroup for a moment after its parent has seen its end.
  for (int attempt = 0;; ++attempt) {
    if (::rmdir(directory_.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY || attempt == 50)
      return fail_errno(errno, fmt::format("{}: cannot be removed", directory_.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

CgroupTree CgroupTree::open(const Sysroot& sysroot, const std::string& configured) {
  LimitsReport limits;
  auto home = find_cgroup_home(sysroot, configured);
  if (!home) {
    const LimitState off{false, home.error().message};
    limits.memory = limits.cpu = limits.cpuset = limits.io = limits.kill = off;
    return CgroupTree(std::move(limits));
  }
  const auto& group = home->directory;
  limits.cgroup = group.string();
  if (home->own && !read_or_empty(group / "cgroup.controllers").empty()) {
    // Its failure shows below: the kernel then refuses every controller with EBUSY.
    if (auto status = move_into_leaf(group); !status) spdlog::warn("{}", status.error().message);
  }
  limits.memory = enable(group, "memory");
  limits.cpu = enable(group, "cpu");
  limits.cpuset = enable(group, "cpuset");
  limits.io = enable(group, "io");
  limits.kill.on = fs::exists(group / "cgroup.kill");
  if (!limits.kill.on) limits.kill.why_not = "cgroup.kill needs Linux 5.14";
  remove_leftovers(group);
  return CgroupTree(std::move(limits));
}

Result<std::optional<TaskCgroup>> CgroupTree::create(const TaskLaunch& task) const {
  auto cgroup = find(task.task_id, task.attempt);
  if (!cgroup) return std::nullopt;
  const auto& group = cgroup->directory();
  std::error_code error;
  fs::create_directory(group, error);
  if (error) return fail_errno(error.value(), fmt::format("cgroup {}", group.string()));
  Status status;
  if (limits_.memory.on && task.memory_limit_bytes)
    status = set_memory_limit(group, with_swap_memory(*task.memory_limit_bytes, task));
  if (status && !task.cpus.empty()) status = confine(TaskCgroup(group), limits_, task.cpus);
  if (status) return cgroup;
  (void)cgroup->remove();
  return tl::unexpected(status.error());
}

std::optional<TaskCgroup> CgroupTree::find(uint64_t task_id, uint32_t attempt) const {
  if (limits_.cgroup.empty()) return std::nullopt;
  return TaskCgroup(fs::path(limits_.cgroup) /
                    fmt::format("{}{}.{}", kTaskPrefix, task_id, attempt));
}

}  // namespace tierpilot
