#include "tests/bench/pipeline/thread_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tierpilot::bench {

std::map<std::string, double> thread_cpu_s(pid_t pid) {
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::map<std::string, double> spent_s;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream file(thread.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    // The name is in parentheses and may hold spaces; user and system time are the 12th and 13th
    // fields after it.
    const auto open = line.find('('), close = line.rfind(')');
    std::istringstream rest(line.substr(close + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) rest >> skipped;
    double user = 0, system = 0;
    rest >> user >> system;
    spent_s[line.substr(open + 1, close - open - 1)] += (user + system) / ticks_per_s;
  }
  return spent_s;
}

}  // namespace tierpilot::bench
