// What the kernel lists of the probe's programs and maps: skips what this machine or user may not
// do.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "daemon/probe/inventory/inventory.h"
#include "daemon/probe/inventory/map_dump.h"
#include "daemon/probe/passive/passive_probe.h"
#include "tests/unit/probe/running_kernel.h"

namespace tierpilot {
namespace {

std::vector<uint32_t> program_ids(const std::function<bool(const LoadedProgram&)>& wanted) {
  std::vector<uint32_t> ids;
  const auto programs = list_programs(Sysroot());
  if (!programs) return ids;
  for (const auto& program : *programs)
    if (wanted(program)) ids.push_back(program.id);
  return ids;
}

TEST(PassiveProbe, ProgramsVanishWithTheirProcess) {
  const auto listed = list_programs(Sysroot());
  if (!listed) GTEST_SKIP() << listed.error().message;
  Child child([] {
    const auto probe = PassiveProbe::start({});
    ::pause();
  });
  child.go();
  std::vector<uint32_t> ids;
  ASSERT_TRUE(eventually([&] {
    ids = program_ids([&](const auto& program) {
      return std::ranges::find(program.holder_pids, child.pgid()) != program.holder_pids.end();
    });
    return !ids.empty();
  }));
  child.finish(SIGKILL);
  EXPECT_TRUE(eventually([&] {
    return program_ids(
               [&](const auto& program) { return std::ranges::find(ids, program.id) != ids.end(); })
        .empty();
  }));
}

TEST(PassiveProbe, MapsCanBeDumpedByTheirTypes) {
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "faults");
  probe->track_group(4'000'000);
  const auto maps = list_maps(Sysroot());
  if (!maps) GTEST_SKIP() << maps.error().message;
  bool seen = false;
  for (const auto& map : *maps) {
    const bool mine = std::ranges::find(map.holder_pids, ::getpid()) != map.holder_pids.end();
    if (!mine || map.name != "tp_fault_groups") continue;
    const auto dump = dump_map(map.id);
    ASSERT_TRUE(dump) << dump.error().message;
    ASSERT_EQ(dump->elements.size(), 1u);
    EXPECT_NE(dump->elements[0].key.find("4000000"), std::string::npos) << dump->elements[0].key;
    seen = true;
  }
  EXPECT_TRUE(seen);
}

TEST(PassiveProbe, WithoutPrivilegesNoProgramRuns) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to give privileges up";
  Child child([] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const auto probe = PassiveProbe::start({});
    for (const auto& state : probe->subjects())
      if (!state.programs.empty() || (state.reason.find("CAP_BPF") == std::string::npos &&
                                      state.reason.find("turned off") == std::string::npos))
        ::_exit(3);
    const auto sample = probe->sample();
    if (sample.migration || sample.block_io || probe->event_fd() >= 0) ::_exit(4);
    if (list_programs(Sysroot()) || list_maps(Sysroot())) ::_exit(5);
  });
  child.go();
  EXPECT_EQ(WEXITSTATUS(child.finish()), 0);
}

}  // namespace
}  // namespace tierpilot
