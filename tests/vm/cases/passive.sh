#!/bin/sh
# The last program that a command loads, by its name; then it is attached at once.
until_loaded() {
  until tiertool prog show | grep -q "$1"; do sleep 0.2; done
  sleep 0.5
}

# What 'tiertool move stat' saw while "$@" ran, and what the kernel counted, to /out/NAME_*.
watch() {
  name=$1
  shift
  tiertool move stat --seconds 0 --cgroup cold -j >/out/"$name.json" &
  watcher=$!
  until_loaded tp_hint_fentry
  cp /proc/vmstat /out/vmstat_"before_$name"
  "$@"
  cp /proc/vmstat /out/vmstat_"after_$name"
  kill -INT $watcher
  wait $watcher || exit 1
}

compact() {
  echo 1 >/proc/sys/vm/compact_memory
}

# 32 MiB of a tmpfs, charged to a cgroup that is then asked to give back half of it.
demote() {
  dd if=/dev/zero of=/dev/shm/cold bs=1M count=32 2>/dev/null
  echo 16M >/sys/fs/cgroup/cold/memory.reclaim || true # EAGAIN: it found less
}

echo '+memory' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/cold
echo 1 >/sys/kernel/mm/numa/demotion_enabled
watch compaction compact
echo $$ >/sys/fs/cgroup/cold/cgroup.procs
watch demotion demote
echo $$ >/sys/fs/cgroup/cgroup.procs
rm /dev/shm/cold
echo 0 >/sys/kernel/mm/numa/demotion_enabled

(tiertool move trace --seconds 0 >/out/trace.txt; echo $? >/out/trace_status) &
until_loaded tp_migr_fentry
echo 2 >/proc/sys/kernel/numa_balancing
failed=0
# Not what needs no kernel, or a disk: the build machine runs that.
/vm/unit-test unit_probe_passive '-CostGovernor.*:GovernorThread.*:PassiveProbe.WrittenBytesReachTheDevice' || failed=1
echo 0 >/proc/sys/kernel/numa_balancing
killall -INT tiertool
wait
tiertool feature probe -j >/out/features.json || failed=1
exit $failed
