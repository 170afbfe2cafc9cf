#include "daemon/agent/gpus/mps_processes.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/sysroot.h"
#include "daemon/exec/process_tree.h"

namespace tierpilot::agent {
namespace {

// As the kernel cuts nvidia-cuda-mps-control and nvidia-cuda-mps-server.
constexpr const char* kCommand = "nvidia-cuda-mps";
constexpr std::chrono::milliseconds kStep{20};
constexpr int kSteps = 50;

bool has_variable(const std::string& environment, const std::string& variable) {
  const std::string all = '\0' + environment + '\0';
  return all.find('\0' + variable + '\0') != all.npos;
}

}  // namespace

std::vector<pid_t> mps_processes(const std::filesystem::path& pipes) {
  const auto file = [](pid_t process, const char* name) {
    return Sysroot().read(fmt::format("/proc/{}/{}", process, name)).value_or("");
  };
  const auto variable = "CUDA_MPS_PIPE_DIRECTORY=" + pipes.native();
  auto found = processes();
  std::erase_if(found, [&](pid_t each) {
    return !file(each, "comm").starts_with(kCommand) || has_ended(each) ||
           !has_variable(file(each, "environ"), variable);
  });
  return found;
}

bool end_mps_processes(const std::filesystem::path& pipes) {
  const auto left = mps_processes(pipes);
  for (const pid_t pid : left) ::kill(pid, SIGTERM);
  for (int step = 0; step < kSteps && !std::all_of(left.begin(), left.end(), has_ended); ++step)
    std::this_thread::sleep_for(kStep);
  for (const pid_t pid : left)
    if (!has_ended(pid)) ::kill(pid, SIGKILL);
  return !left.empty();
}

}  // namespace tierpilot::agent
