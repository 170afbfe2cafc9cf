#include "daemon/agent/node/systemd.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>

namespace tierpilot::agent {

bool is_service() {
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

void notify_ready(const std::string& status) {
  ::sd_notify(0, fmt::format("READY=1\nSTATUS={}", status).c_str());
}

void notify_status(const std::string& status) {
  ::sd_notify(0, fmt::format("STATUS={}", status).c_str());
}

void notify_draining(int64_t more_ms) {
  ::sd_notify(0, fmt::format("STOPPING=1\nSTATUS=Draining: running tasks may end\n"
                             "EXTEND_TIMEOUT_USEC={}",
                             more_ms * 1000)
                     .c_str());
}

void notify_stopping() {
  ::sd_notify(0, "STOPPING=1\nSTATUS=Stopping tasks");
}

void notify_watchdog() {
  ::sd_notify(0, "WATCHDOG=1");
}

int64_t watchdog_period_ms() {
  uint64_t interval_us = 0;
  if (::sd_watchdog_enabled(0, &interval_us) <= 0) return 0;
  return static_cast<int64_t>(interval_us / 2000);
}

}  // namespace tierpilot::agent
