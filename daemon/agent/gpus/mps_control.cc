#include "daemon/agent/gpus/mps_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "daemon/agent/gpus/mps_processes.h"

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFault = "FAULT";
constexpr size_t kMostServers = 64;
constexpr std::chrono::milliseconds kStartStep{50};

std::string trimmed(std::string text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(std::find_if_not(text.rbegin(), text.rend(), blank).base(), text.end());
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  return text;
}

// One that begins so: "faulted", but not "default".
bool has_word(const std::string& line, const std::string& word) {
  for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1))
    if (at == 0 || std::isalpha(static_cast<unsigned char>(line[at - 1])) == 0) return true;
  return false;
}

std::vector<int32_t> pids_in(const std::string& text) {
  std::vector<int32_t> pids;
  std::istringstream lines(text);
  for (int32_t pid = 0; pids.size() < kMostServers && lines >> pid;)
    if (pid > 0) pids.push_back(pid);
  return pids;
}

}  // namespace

MpsControl::MpsControl(MpsOptions options) : options_(std::move(options)) {}

MpsControl::~MpsControl() {
  if (!program_.is_running()) return;
  // Asked nicely it ends its servers too.
  if (!hangs_) (void)command("quit");
  program_.end();
  end_mps_processes(pipes(options_.folder));
}

bool MpsControl::is_there() const {
  const auto answer = command("get_server_list");
  return answer || answer.error().code == ErrorCode::kTimeout;
}

std::vector<std::pair<std::string, std::string>> MpsControl::client_env(const fs::path& folder) {
  return {{"CUDA_MPS_PIPE_DIRECTORY", pipes(folder).native()},
          {"CUDA_MPS_LOG_DIRECTORY", (folder / "log").native()}};
}

std::vector<std::pair<std::string, std::string>> MpsControl::env() const {
  auto env = client_env(options_.folder);
  env.emplace_back("CUDA_VISIBLE_DEVICES", options_.gpu);
  // Its server may stand beside it, outside the usual folders, and the driver's libraries where
  // only the daemon's environment says: so it is in containers.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  // An empty or relative folder would be whichever the daemon stands in.
  if (const fs::path program = options_.program; program.is_absolute())
    path = program.parent_path().native() + ":" + path;
  env.emplace_back("PATH", path);
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"))
    env.emplace_back("LD_LIBRARY_PATH", libraries);
  return env;
}

Result<std::string> MpsControl::command(const std::string& line) const {
  auto answer = ask_program({options_.program, {}, env()}, line + '\n', options_.timeout_ms);
  hangs_ = !answer && answer.error().code == ErrorCode::kTimeout;
  return answer;
}

Status MpsControl::make_folders() const {
  std::error_code error;
  for (const auto& folder : {options_.folder, pipes(options_.folder), options_.folder / "log"}) {
    fs::create_directories(folder, error);
    if (!error) fs::permissions(folder, fs::perms::owner_all, error);
    if (error) return fail(ErrorCode::kIo, fmt::format("{}: {}", folder.native(), error.message()));
  }
  return {};
}

// A daemon that was killed could not end its own one, which answers `quit` before it is gone: until
// then a new one would refuse to start.
Status MpsControl::end_what_is_left(bool idle) const {
  const auto deadline = after_timeout();
  const auto answer = command("quit");
  if (answer)
    while (std::chrono::steady_clock::now() < deadline && command("get_server_list"))
      std::this_thread::sleep_for(kStartStep);
  else if (answer.error().code == ErrorCode::kTimeout && !idle)
    return tl::unexpected(answer.error());
  if (end_mps_processes(pipes(options_.folder)) || answer)
    spdlog::info("GPU {}: the MPS control daemon of an earlier daemon is ended", options_.gpu);
  return {};
}

std::chrono::steady_clock::time_point MpsControl::after_timeout() const {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.timeout_ms);
}

Result<bool> MpsControl::keep_running(bool idle) {
  if (program_.is_running()) return false;
  if (auto made = make_folders(); !made) return tl::unexpected(made.error());
  if (auto ended = end_what_is_left(idle); !ended) return tl::unexpected(ended.error());
  died_ = died_ || !known_.empty();
  known_.clear();
  auto started = StayingProgram::start({options_.program, {"-f"}, env()},
                                       (options_.folder / "log" / "console.log").native());
  if (!started) return tl::unexpected(started.error());
  program_ = std::move(*started);
  // It serves when it answers.
  const auto deadline = after_timeout();
  while (true) {
    const auto answer = command("get_server_list");
    if (answer) break;
    if (!program_.is_running() || std::chrono::steady_clock::now() >= deadline) {
      program_.end();
      return fail(ErrorCode::kUnavailable,
                  fmt::format("the MPS control daemon of GPU {} does not come up: {}", options_.gpu,
                              answer.error().message));
    }
    std::this_thread::sleep_for(kStartStep);
  }
  std::error_code error;
  const auto bytes = fs::file_size(options_.folder / "log" / "server.log", error);
  log_read_ = error ? 0 : bytes;
  return true;
}

Result<MpsState> MpsControl::ask() {
  auto listed = command("get_server_list");
  if (!listed) return tl::unexpected(listed.error());
  MpsState state;
  for (const int32_t pid : pids_in(*listed)) {
    auto status = command(fmt::format("get_server_status {}", pid));
    if (!status) return tl::unexpected(status.error());
    state.servers[pid] = trimmed(std::move(*status));
  }
  for (const auto& [pid, status] : state.servers)
    if (const auto before = known_.find(pid);
        status.find(kFault) != status.npos &&
        (before == known_.end() || before->second.find(kFault) == before->second.npos))
      state.faulted = true;
  const bool logged = log_tells_fault();
  const bool told_before = std::any_of(known_.begin(), known_.end(), [](const auto& server) {
    return server.second.find(kFault) != server.second.npos;
  });
  state.faulted = state.faulted || (logged && !told_before);
  state.gone = std::exchange(died_, false) ||
               std::any_of(known_.begin(), known_.end(), [&](const auto& server) {
                 return !state.servers.contains(server.first);
               });
  known_ = state.servers;
  return state;
}

bool MpsControl::log_tells_fault() {
  const auto path = options_.folder / "log" / "server.log";
  std::error_code error;
  // Whoever keeps it short begins it anew.
  if (const auto bytes = fs::file_size(path, error); !error && bytes < log_read_) log_read_ = 0;
  std::ifstream log(path, std::ios::binary);
  log.seekg(static_cast<std::streamoff>(log_read_));
  bool tells = false;
  for (std::string line; std::getline(log, line) && !log.eof();) {
    log_read_ += line.size() + 1;
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    tells = tells || has_word(line, "fault") || has_word(line, "fatal");
  }
  return tells;
}

}  // namespace tierpilot::agent
