#include "daemon/probe/active/probe_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "daemon/probe/active/json.h"

namespace tierpilot {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string line_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

// False: nobody is there any more.
bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) text.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

// Takes the first line off `text`.
std::optional<std::string> take_line(std::string& text) {
  const auto end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

double children_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

ordered_json answer_to(const std::string& request) {
  const auto asked = parse_json<json>(request);
  std::vector<TierSpec> tiers;
  for (const auto& tier : asked.at("tiers")) tiers.push_back(tier_from_json(tier));
  const double before_s = children_cpu_s();
  const auto measured = measure_tiers(tiers, options_from_json(asked.at("options")));
  ordered_json answer{{"cpu_s", children_cpu_s() - before_s}};
  if (!measured) {
    answer["error"] = measured.error().message;
    return answer;
  }
  auto& list = answer["measured"] = ordered_json::array();
  for (const auto& tier : *measured) list.push_back(measurement_to_json(tier));
  return answer;
}

void serve(int fd) {
  std::string received;
  char chunk[4096];
  for (;;) {
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    received.append(chunk, static_cast<size_t>(got));
    while (const auto line = take_line(received))
      if (!send_all(fd, line_of(answer_to(*line)))) return;
  }
}

[[noreturn]] void child_main(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "tierpilot-probe");
  // A descriptor kept here would keep locks and connections of the parent alive after its end.
  constexpr int kFirst = 3;
  if (fd != kFirst && dup2(fd, kFirst) < 0) _exit(1);
  close_range(kFirst + 1, ~0U, 0);
  try {
    serve(kFirst);
  } catch (...) {
    _exit(2);
  }
  _exit(0);
}

}  // namespace

Result<std::unique_ptr<ProbeServer>> ProbeServer::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(errno, "probe server: socketpair");
  UniqueFd here(ends[0]), there(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return fail_errno(errno, "probe server: fork");
  if (pid == 0) child_main(there.get());
  return std::unique_ptr<ProbeServer>(new ProbeServer(pid, std::move(here)));
}

ProbeServer::~ProbeServer() {
  // Its own measuring child dies with it (PR_SET_PDEATHSIG).
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status ProbeServer::ask(const std::vector<TierSpec>& tiers, const ProbeOptions& options) {
  if (busy_) return fail(ErrorCode::kConflict, "probe server: it is measuring already");
  ordered_json request{{"tiers", ordered_json::array()}, {"options", options_to_json(options)}};
  for (const auto& tier : tiers) request["tiers"].push_back(tier_to_json(tier));
  if (gone_ || !send_all(fd(), line_of(request)))
    return fail(ErrorCode::kIo, "probe server: its process has ended");
  busy_ = true;
  return {};
}

std::optional<ProbeServer::Answer> ProbeServer::take() {
  char chunk[4096];
  while (!gone_) {
    const ssize_t got = recv(fd(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0)
      gone_ = true;
    else
      received_.append(chunk, static_cast<size_t>(got));
  }
  const auto line = take_line(received_);
  if (!line && !gone_) return std::nullopt;
  busy_ = false;
  if (!line) return Answer{fail(ErrorCode::kIo, "probe server: its process has ended")};
  try {
    const auto answer = parse_json<json>(*line);
    const double cpu_s = answer.at("cpu_s");
    if (answer.contains("error"))
      return Answer{fail(ErrorCode::kInvalid, answer["error"].get<std::string>()), cpu_s};
    std::vector<TierMeasurement> tiers;
    for (const auto& tier : answer.at("measured")) tiers.push_back(measurement_from_json(tier));
    return Answer{std::move(tiers), cpu_s};
  } catch (const json::exception& error) {
    return Answer{fail(ErrorCode::kIo, std::string("probe server: ") + error.what())};
  }
}

}  // namespace tierpilot
