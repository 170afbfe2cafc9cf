#include "daemon/agent/gpus/mps_processes.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;

// As the kernel cuts nvidia-cuda-mps-control and nvidia-cuda-mps-server.
constexpr const char* kCommand = "nvidia-cuda-mps";
constexpr std::chrono::milliseconds kStep{20};
constexpr int kSteps = 50;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has_variable(const std::string& environment, const std::string& variable) {
  const std::string all = '\0' + environment + '\0';
  return all.find('\0' + variable + '\0') != all.npos;
}

// One that has ended and that nobody has waited for is none.
bool runs(pid_t pid) {
  const auto stat = read("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(") ");
  return name_end != stat.npos && stat[name_end + 2] != 'Z';
}

}  // namespace

std::vector<pid_t> mps_processes(const fs::path& pipes) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto name = entry.path().filename().native();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    if (read(entry.path() / "comm") == std::string(kCommand) + '\n' && runs(pid) &&
        has_variable(read(entry.path() / "environ"), "CUDA_MPS_PIPE_DIRECTORY=" + pipes.native()))
      found.push_back(pid);
  }
  return found;
}

bool end_mps_processes(const fs::path& pipes) {
  const auto left = mps_processes(pipes);
  for (const pid_t pid : left) ::kill(pid, SIGTERM);
  for (int step = 0; step < kSteps && std::any_of(left.begin(), left.end(), runs); ++step)
    std::this_thread::sleep_for(kStep);
  for (const pid_t pid : left)
    if (runs(pid)) ::kill(pid, SIGKILL);
  return !left.empty();
}

}  // namespace tierpilot::agent
