#!/bin/sh
# As a task: with a memory cgroup of its own.
echo '+memory' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/bench
echo $$ >/sys/fs/cgroup/bench/cgroup.procs
bench_passive --pairs 12 --seconds 0.05 || exit 1
bench_passive --pairs 6 --seconds 0.05 --with fault_time
