#!/bin/sh
# As a task: with a memory cgroup of its own. Nothing else runs, so wall time has all of the cost.
echo '+memory' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/bench
echo $$ >/sys/fs/cgroup/bench/cgroup.procs
bench_passive --pairs 24 --seconds 0.1 --long-pairs 2 --unlimited-pairs 2 --wall || exit 1
