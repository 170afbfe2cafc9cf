// What the threads of a process have cost.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

namespace tierpilot::bench {

// CPU seconds by thread name, from /proc.
std::map<std::string, double> thread_cpu_s(pid_t pid);

}  // namespace tierpilot::bench
