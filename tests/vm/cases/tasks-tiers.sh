#!/bin/sh
die() { echo "$*"; tail -n 50 /out/coordinator.log /out/daemon.log; exit 1; }
until_true() {
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done
  die "never true: $*"
}
# `task NAME OPTIONS...`: runs to its end; what it says and what is known of it come back.
task() {
  name=$1; shift
  id=$(tierctl task submit -j --name "$name" "$@" | sed -n 's/.*"id": \([0-9]*\).*/\1/p' | head -n 1)
  tierctl task wait "$id" >/dev/null || echo "$name failed"
  tierctl task logs "$id" >"/out/$name.log" 2>&1
  tierctl task show -j "$id" >"/out/$name.json"
}
moves_are_counted() {
  tierctl node show -j guest >/out/node.json
  ! tr -d '\n ' </out/node.json | grep -q '"placement_promoted_bytes","value":0\.0'
}
says() { tierctl task logs "$1" | grep -q shares; }

mkdir -p /run/tierpilot /etc/tierpilot
cat >/etc/tierpilot/coordinator.toml <<END
[lease]
duration_ms = 30000
[policy]
active = "least-loaded"
END
# Latencies are the firmware's: emulated nodes are equally fast.
cat >/etc/tierpilot/tierpilotd.toml <<END
[node]
name = "guest"
units = 4
cgroup = "/tierpilot"
[pool]
fast_budget = "16MiB"
slow_budget = "16MiB"
[probe]
calibrate = false
passive = false
[placement]
interval_ms = 500
scan_interval_ms = 1000
cpu_share = 0
END
echo '+cpu +memory +io' >/sys/fs/cgroup/cgroup.subtree_control
tierpilot-coordinator --config /etc/tierpilot/coordinator.toml >/out/coordinator.log 2>&1 &
until_true test -S /run/tierpilot/coordinator.sock
tierpilotd --config /etc/tierpilot/tierpilotd.toml >/out/daemon.log 2>&1 &
daemon=$!
until_true sh -c 'tierctl node list -j | grep -q "\"state\": \"up\""'

task slow --mem-tier slow -- vm_tier_task heap 48 4
task fast --mem-tier fast -- vm_tier_task heap 48 0
task interleave --mem-tier interleave:1,1 -- vm_tier_task heap 48 4
task heap --mem-tier heap:1,1 -- vm_tier_task heap 48 4
task weights --mem-tier interleave:3,1 -- vm_tier_task heap 48 0
task hot -- vm_tier_task hot 64 60
# What a node counts comes with its next sign of life.
until_true moves_are_counted
cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >/out/kdamonds

# Paused, a task stands still.
tierctl task submit --name clock -- sh -c 'while :; do echo shares; sleep 0.1; done' >/dev/null
until_true says 7
tierctl task pause 7 >/dev/null || die "no pause"
until_true grep -q 'frozen 1' /sys/fs/cgroup/tierpilot/task-7.1/cgroup.events
tierctl task show -j 7 >/out/paused.json
tierctl task resume 7 >/dev/null || die "no resume"
until_true grep -q 'frozen 0' /sys/fs/cgroup/tierpilot/task-7.1/cgroup.events
tierctl task cancel 7 >/dev/null

kill "$daemon"
wait "$daemon" || die "the daemon ended badly"
cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >/out/kdamonds_after
