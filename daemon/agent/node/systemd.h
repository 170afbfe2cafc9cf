// What systemd is told (Type=notify): ready, status text, watchdog, stopping. Without systemd every
// call does nothing.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot::agent {

// Whether somebody is told, who starts the daemon again where it failed.
bool is_service();
void notify_ready(const std::string& status);
void notify_status(const std::string& status);
// The stop will take up to so long more than was planned for.
void notify_draining(int64_t more_ms);
void notify_stopping();
void notify_watchdog();
// Half of the watchdog's interval; 0: no watchdog is asked for.
int64_t watchdog_period_ms();

}  // namespace tierpilot::agent
