#include "daemon/exec/users/clear_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/files/tree_removal.h"
#include "base/unique_fd.h"
#include "daemon/exec/process.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/task_user.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedFolders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};
constexpr auto kStep = std::chrono::milliseconds(5);
constexpr int kKillSteps = 400;
constexpr int kPatienceMs = 10'000;  // since the last sign of life
constexpr auto kMost = std::chrono::seconds(60);
constexpr size_t kSignEvery = 4'096;  // entries

using GoesOn = std::function<bool()>;

std::string remove_files(uid_t uid, const GoesOn& goes_on) {
  std::string left;
  for (const char* folder : kSharedFolders) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      struct stat info {};
      const auto& path = it->path();
      if (::lstat(path.c_str(), &info) != 0 || info.st_uid != uid) continue;
      const int failed = remove_tree(path, goes_on);
      if (failed != 0 && left.empty()) left = path.native() + ": " + std::strerror(failed);
    }
  }
  return left;
}

// Columns of /proc/sysvipc/*: key, id, ... and by name the owner's.
template <class Remove>
void remove_ipc(const char* kind, uid_t uid, Remove remove) {
  std::ifstream table(fmt::format("/proc/sysvipc/{}", kind));
  std::string line, word;
  std::getline(table, line);
  std::vector<std::string> columns;
  for (std::istringstream names(line); names >> word;) columns.push_back(word);
  const auto place = [&](const char* name) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  const size_t id = place(fmt::format("{}id", kind).c_str()), owner = place("uid"),
               creator = place("cuid");  // who may give it to others, and remove it all the same
  while (std::getline(table, line)) {
    std::vector<std::string> values;
    for (std::istringstream in(line); in >> word;) values.push_back(word);
    if (std::max({id, owner, creator}) >= values.size()) continue;
    if (const auto number = std::to_string(uid);
        values[owner] == number || values[creator] == number)
      remove(std::atoi(values[id].c_str()));
  }
}

std::string remove_all(uid_t uid, const GoesOn& goes_on) {
  remove_ipc("shm", uid, [](int id) { ::shmctl(id, IPC_RMID, nullptr); });
  remove_ipc("sem", uid, [](int id) { ::semctl(id, 0, IPC_RMID); });
  remove_ipc("msg", uid, [](int id) { ::msgctl(id, IPC_RMID, nullptr); });
  return remove_files(uid, goes_on);
}

constexpr char kSign = '+', kAnswer = '.';

// What a child says after its signs of life.
Result<std::string> answer_of(int said) {
  const auto deadline = std::chrono::steady_clock::now() + kMost;
  std::string text;
  for (char part[PIPE_BUF];;) {
    if (!wait_readable(said, kPatienceMs)) return fail(ErrorCode::kTimeout, "who clears it hangs");
    const ssize_t got = ::read(said, part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
    text.erase(0, text.find_first_not_of(kSign));
    if (text.empty() && std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::kTimeout,
                  fmt::format("it has so much that {} s were not enough", kMost.count()));
  }
  if (text.empty()) return fail(ErrorCode::kTimeout, "who clears it was killed");
  return text.substr(1);
}

// Runs `act` in a child that is the user; it may be killed there, by the user's other processes.
template <class Act>
Result<std::string> as_user(uid_t uid, gid_t gid, Act act) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  UniqueFd said(ends[0]), say(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, "fork");
  if (pid == 0) {
    const Status is_user = bound_privileges()
                               .and_then([&] { return become_user({.uid = uid, .gid = gid}); })
                               .and_then([] { return give_up_all_privileges(); });
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    size_t entries = 0;
    const GoesOn goes_on = [&] {
      if (++entries % kSignEvery == 0) (void)!::write(say.get(), &kSign, 1);
      return true;
    };
    const std::string text = kAnswer + (is_user ? act(goes_on) : is_user.error().message);
    (void)!::write(say.get(), text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    ::_exit(0);
  }
  say.reset();
  auto answer = answer_of(said.get());
  if (!answer) ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return answer;
}

std::string kill_all_processes(uid_t uid, gid_t gid) {
  for (int step = 0; has_processes(uid); ++step) {
    if (step == kKillSteps) return "processes of it cannot be killed";
    // All that the user may signal, but not the process that does it: its own, and no others.
    const auto killed = as_user(uid, gid, [](const GoesOn&) {
      ::kill(-1, SIGKILL);
      return std::string();
    });
    if (killed && !killed->empty()) return *killed;
    std::this_thread::sleep_for(kStep);
    // What was adopted meanwhile.
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
  return {};
}

}  // namespace

bool has_processes(uid_t uid) {
  errno = 0;
  return ::getpriority(PRIO_USER, uid) != -1 || errno != ESRCH;
}

Status clear_user(uid_t uid, gid_t gid) {
  auto left = kill_all_processes(uid, gid);
  if (left.empty()) {
    const auto removed =
        as_user(uid, gid, [&](const GoesOn& goes_on) { return remove_all(uid, goes_on); });
    left = removed ? *removed : removed.error().message;
  }
  if (left.empty()) return {};
  return fail(ErrorCode::kConflict, fmt::format("user {}: {}", uid, left));
}

std::string clear_task(const TaskLaunch& task) {
  const auto& user = *task.user;
  take_back_logs(task);
  auto cleared = user.reserved ? clear_user(user.uid, user.gid) : Status();
  // Last: no process is left that could undo it.
  // A submitter has files elsewhere, which a second name here is no reason to take.
  const TakeOver what{.all_folders = true, .linked_files = user.reserved};
  auto taken = take_over_tree(task.working_directory, user.uid, what);
  for (const auto& folder : task.given_folders)
    if (auto back = take_over_tree(folder, user.uid, what); taken) taken = std::move(back);
  take_back_logs(task);  // of a second name, which is gone now
  if (cleared) cleared = taken;
  if (!cleared) return cleared.error().message;
  nothing_left(task.log_directory);
  return {};
}

}  // namespace tierpilot
