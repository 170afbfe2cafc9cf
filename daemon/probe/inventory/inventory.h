// The BPF programs and maps that are loaded on this machine, whoever loaded them, by name prefix.
// Needs CAP_SYS_ADMIN, as the kernel lists ids to nobody else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot {

// All names of this project begin so.
inline constexpr std::string_view kBpfPrefix = "tp_";

struct LoadedProgram {
  uint32_t id = 0;
  std::string name;
  std::string type;  // "tracing", "perf_event"
  uint64_t run_time_ns = 0;
  uint64_t run_count = 0;
  uint64_t missed_runs = 0;
  uint32_t links = 0;              // attachments
  std::vector<int> holder_pids{};  // processes with an open descriptor of it, usually the loader
};

struct LoadedMap {
  uint32_t id = 0;
  std::string name;
  std::string type;
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t max_entries = 0;
  bool typed = false;  // has BTF: can be decoded
  std::vector<int> holder_pids{};
};

// kDenied names the capability that is missing. Holders are found in /proc under `sysroot`.
Result<std::vector<LoadedProgram>> list_programs(const Sysroot& sysroot);
Result<std::vector<LoadedMap>> list_maps(const Sysroot& sysroot);

}  // namespace tierpilot
