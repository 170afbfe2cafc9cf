// A made-up machine with DAMON's files: counts and states are what somebody wrote last.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/sysroot.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot {

inline const std::string kKdamonds = "/sys/kernel/mm/damon/admin/kdamonds/";

struct DamonMachine : ::testing::Test {
  void write(const std::string& path, const std::string& text) {
    const auto file = sysroot.resolve(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string read(const std::string& path) { return sysroot.read(path).value_or("missing"); }

  // The files that the kernel would make; counts and states are what the tracker writes.
  void make_damon(const std::string& kdamonds = "0") {
    write(kKdamonds + "nr_kdamonds", kdamonds);
    write("/proc/sys/kernel/random/boot_id", "boot-1");
    write("/run/keep", "");
    write("/proc/42/comm", "x");
    const std::string context = kKdamonds + "0/contexts/0/";
    for (const char* file :
         {"operations", "monitoring_attrs/intervals/sample_us",
          "monitoring_attrs/intervals/aggr_us", "monitoring_attrs/intervals/update_us",
          "monitoring_attrs/nr_regions/min", "monitoring_attrs/nr_regions/max",
          "targets/nr_targets", "targets/0/pid_target", "schemes/nr_schemes", "schemes/0/action",
          "schemes/0/access_pattern/sz/max", "schemes/0/access_pattern/nr_accesses/max",
          "schemes/0/access_pattern/age/max"})
      write(context + file, "");
    std::filesystem::create_directories(sysroot.resolve(context + "schemes/0/tried_regions"));
    write(context + "avail_operations", "vaddr\nfvaddr\npaddr\n");
    write(kKdamonds + "0/contexts/nr_contexts", "0");
    write(kKdamonds + "0/state", "off");
  }
  void add_region(int index, uint64_t start, uint64_t end, int accesses) {
    const auto region = fmt::format("{}0/contexts/0/schemes/0/tried_regions/{}/", kKdamonds, index);
    write(region + "start", std::to_string(start));
    write(region + "end", std::to_string(end));
    write(region + "nr_accesses", std::to_string(accesses));
  }

  ScratchDirectory root;
  Sysroot sysroot{root.path()};
};

}  // namespace tierpilot
