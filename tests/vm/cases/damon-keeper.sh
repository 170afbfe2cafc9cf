#!/bin/sh
kdamonds=/sys/kernel/mm/damon/admin/kdamonds
units="-u tierpilotd -u tierpilot-damon -u tierpilot-coordinator -u foreign"

die() { echo "$*"; journalctl -b -o cat $units; exit 1; }
until_true() {
  for _ in $(seq 500); do "$@" >/dev/null 2>&1 && return; sleep 1; done
  die "never true: $*"
}
put() { answer=$1; shift; "$@" >"/out/$answer" 2>&1; }
main_pid() { systemctl show -P MainPID "$1"; }
node_is_up() { tierctl node list -j | grep -q '"state": "up"'; }
damon_files() { find "${kdamonds%/*}" -type f | sort | while read -r file; do echo "$file $(cat "$file")"; done; }
moves_are_counted() {
  tierctl node show -j guest >/out/node.json
  ! tr -d '\n ' </out/node.json | grep -q '"placement_promoted_bytes","value":0\.0'
}
has_moved() { journalctl -o cat -u foreign | grep -q 'shares": \[\(0\.9\|1\.0\)'; }
is_free() { [ "$(cat $kdamonds/nr_kdamonds)" = 0 ]; }
is_watching() { cat $kdamonds/*/state | grep -q on; }
has_successor() { [ "$(main_pid tierpilot-damon)" != 0 ] && [ "$(main_pid tierpilot-damon)" != "$1" ]; }
is_over() { ! systemctl is-active --quiet "$1"; }
# `as_user NAME GROUPS COMMAND...`: as nobody, also in the groups; its output comes back. There is no
# bus in the guest, so that systemd-run cannot wait.
as_user() {
  answer=$1 groups=$2; shift 2
  systemd-run --quiet --unit "run-$answer" -p User=nobody -p SupplementaryGroups="$groups" \
    -p StandardOutput=file:"/out/$answer" -p StandardError=file:"/out/$answer.err" "$@"
  until_true is_over "run-$answer"
}

for name in tierpilotd tierpilot-damon tierpilot-coordinator; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "/etc/systemd/system/$name.service")
  mkdir -p "${program%/*}"
  ln -s "/usr/bin/$name" "$program"
done
mkdir -p /etc/tierpilot
cat >/etc/tierpilot/coordinator.toml <<END
[lease]
duration_ms = 20000
[policy]
active = "least-loaded"
END
# Latencies are the firmware's: emulated nodes are equally fast.
cat >/etc/tierpilot/tierpilotd.toml <<END
[node]
name = "guest"
units = 4
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
[[placement.rule]]
cgroup = "/system.slice/foreign.service"
mode = "enforce"
END
# The kernel would move pages by itself.
echo 0 >/proc/sys/kernel/numa_balancing
put before damon_files
systemctl start tierpilot-coordinator || die "no coordinator"
systemctl start tierpilotd || die "no daemon"
until_true node_is_up
put damon.show systemctl show tierpilot-damon

# A task of the daemon's, whose hot quarter begins on the far node.
tierctl task submit --wait --name hot -- vm_tier_task hot 64 300
put hot.log tierctl task logs 1
put hot.json tierctl task show -j 1
keeper=$(main_pid tierpilot-damon)
put keeper.status cat "/proc/$keeper/status"
put keeper.stat cat "/proc/$keeper/stat"
until_true is_free
# What a node counts comes with its next sign of life.
until_true moves_are_counted

# A process of another user's, that a rule names.
systemd-run --quiet --unit foreign -p User=nobody vm_tier_task stay 64 1000
until_true has_moved
put foreign_maps cat "/proc/$(main_pid foreign)/numa_maps"
systemctl stop foreign
put foreign.log journalctl -o cat -u foreign

# A task that stays: whoever is killed, no kdamond goes on, and the daemon with another keeper does.
tierctl task submit --name stays -- vm_tier_task heap 48 10000 >/dev/null
until_true is_watching
keeper=$(main_pid tierpilot-damon)
kill -KILL "$keeper"
until_true has_successor "$keeper"
until_true is_watching
mkdir -p /etc/systemd/system/tierpilotd.service.d
printf '[Service]\nRestart=no\n' >/etc/systemd/system/tierpilotd.service.d/once.conf
systemctl daemon-reload
kill -KILL "$(main_pid tierpilotd)"
until_true is_free
systemctl start tierpilotd || die "no daemon again"
until_true is_watching
keeper=$(main_pid tierpilot-damon)
kill -KILL "$(main_pid tierpilotd)" "$keeper"
until_true is_free
put killed damon_files

# Members of the group may look into their own processes, and no others.
systemctl start tierpilotd || die "no daemon at last"
until_true is_watching
systemd-run --quiet --unit own -p User=nobody vm_tier_task heap 16 10000
as_user own.json tierpilot tiertool heat show -j --seconds 3 "$(main_pid own)"
as_user others tierpilot tiertool heat show --tracker damon --seconds 3 "$(main_pid tierpilotd)"
as_user outsider "" tiertool heat show --tracker damon --seconds 3 "$(main_pid own)"
# Root finds DAMON in use by the keeper, and takes its place in the queue.
put root.json tiertool heat show -j --tracker damon --seconds 10 --interval 0.5 "$(main_pid own)"

systemctl stop tierpilotd || die "no stop"
until_true is_free
put idle.json tiertool heat show -j --tracker damon --seconds 10 --interval 0.5 "$(main_pid own)"
systemctl stop tierpilot-damon.socket tierpilot-damon || die "no stop of the keeper"
put stopped.show systemctl show tierpilot-damon
put after damon_files
put left find /run/tierpilot-damon -type f -o -type s
put journal.txt journalctl -b -o cat $units
