#!/bin/sh
echo '+memory' >/sys/fs/cgroup/cgroup.subtree_control
# Mode 2 hides pages of lower tiers only, and this kernel takes both nodes for one tier.
echo 1 >/proc/sys/kernel/numa_balancing
failed=0
# Not what needs no kernel, or a disk: the build machine runs that.
/vm/unit-test unit_probe_passive '-CostGovernor.*:GovernorThread.*:PassiveProbe.WrittenBytesReachTheDevice' || failed=1
echo 0 >/proc/sys/kernel/numa_balancing
tiertool feature probe -j >/out/features.json || failed=1
exit $failed
