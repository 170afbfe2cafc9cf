#!/bin/sh
# As a task: with a memory cgroup of its own. Nothing else runs, so wall time has all of the cost.
echo '+memory' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/bench
echo $$ >/sys/fs/cgroup/bench/cgroup.procs
bench_passive --pairs 60 --seconds 0.05 --wall || exit 1
