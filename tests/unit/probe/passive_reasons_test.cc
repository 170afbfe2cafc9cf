#include <gtest/gtest.h>
#include <linux/capability.h>

#include <cerrno>

#include "daemon/probe/passive/capabilities.h"
#include "daemon/probe/passive/libbpf_log.h"

namespace tierpilot {
namespace {

constexpr const char* kBpfOnly = "Name:\tx\nCapEff:\t0000008000000000\nCapBnd:\t0\n";
constexpr const char* kRoot = "CapEff:\t000001ffffffffff\n";

TEST(PassiveCapabilities, EffectiveSetIsRead) {
  const auto some = Capabilities::parse(kBpfOnly);
  EXPECT_TRUE(some.has(CAP_BPF));
  EXPECT_FALSE(some.has(CAP_PERFMON));
  EXPECT_EQ(some.missing({CAP_BPF, CAP_PERFMON}), "CAP_PERFMON");
}

TEST(PassiveCapabilities, TextWithoutThemHasNone) {
  for (const char* text : {"", "CapEff:\t", "CapEff:\tzz", "Name:\tx\n"})
    EXPECT_EQ(Capabilities::parse(text).missing({CAP_BPF, CAP_PERFMON}), "CAP_BPF, CAP_PERFMON");
}

TEST(PassiveReasons, MissingCapabilitiesAreNamed) {
  const auto reason =
      unavailable_reason("loading its BPF programs", EPERM, "", Capabilities::parse(kBpfOnly));
  EXPECT_EQ(reason,
            "unavailable: loading its BPF programs: Operation not permitted (missing CAP_PERFMON)");
}

TEST(PassiveReasons, RefusedRootIsToldWhoElseMayRefuse) {
  const auto reason = unavailable_reason("load", EPERM, "", Capabilities::parse(kRoot));
  EXPECT_NE(reason.find("lockdown"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("missing"), std::string::npos) << reason;
}

TEST(PassiveReasons, DetailIsKept) {
  const auto reason =
      unavailable_reason("load", EINVAL, "verifier: unknown func", Capabilities::parse(kRoot));
  EXPECT_EQ(reason, "unavailable: load: Invalid argument (verifier: unknown func)");
}

TEST(PassiveReasons, VerifiersLastWordIsFound) {
  const std::string log =
      "libbpf: prog 'tp_x': -- BEGIN PROG LOAD LOG --\n"
      "reg type unsupported for arg#0 function tp_x#11\n"
      "; stats->calls++; @ migration.bpf.c:62\n"
      "62: (79) r2 = *(u64 *)(r1 +32)\n"
      "R1 unbounded memory access, make sure to bounds check any such access\n"
      "processed 59 insns (limit 1000000) max_states_per_insn 0\n"
      "-- END PROG LOAD LOG --\n";
  EXPECT_EQ(verifier_complaint(log),
            "verifier: R1 unbounded memory access, make sure to bounds check any such access");
  EXPECT_EQ(verifier_complaint("libbpf: failed to find valid kernel BTF"), "");
}

}  // namespace
}  // namespace tierpilot
