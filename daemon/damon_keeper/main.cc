// tierpilot-damon: keeps DAMON, which is root's, for those who are not.

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/descriptors.h"
#include "base/log.h"
#include "daemon/damon_keeper/keeper.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

using tierpilot::ErrorCode;
using tierpilot::UniqueFd;

tierpilot::Result<UniqueFd> given_listener() {
  if (::sd_listen_fds(1) != 1 ||
      ::sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, nullptr, 0) <= 0)
    return tierpilot::fail(ErrorCode::kInvalid,
                           "it needs one listening Unix socket of type SOCK_SEQPACKET from its "
                           "starter: systemctl start tierpilot-damon.socket");
  return UniqueFd(SD_LISTEN_FDS_START);
}

UniqueFd ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

tierpilot::Status serve(const tierpilot::KeeperOptions& options) {
  const tierpilot::Sysroot here;
  auto listener = given_listener();
  if (!listener) return tl::unexpected(listener.error());
  const auto stop = ending_signals();
  return tierpilot::Keeper(here, std::move(*listener), stop.get(), options).run();
}

}  // namespace

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  int idle_s = 60;
  bool release = false;
  CLI::App app{"Keeps DAMON, the kernel's data access monitor, for processes that are not root."};
  app.add_option("--idle", idle_s, "seconds without a client after which it ends")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_flag("--release", release, "turn off what a killed keeper left, and end");
  app.set_version_flag("-V,--version", "tierpilot-damon " TIERPILOT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (auto status = tierpilot::start_log("tierpilot-damon", "info"); !status) return kFailed;
  if (release) {
    const tierpilot::Sysroot here;
    const tierpilot::DamonFiles makes_sure(here);
    return 0;
  }
  if (auto status = serve({.idle_ms = idle_s * 1000}); !status) {
    spdlog::critical("{}", status.error().message);
    return kFailed;
  }
  return 0;
}
