#!/bin/sh
group=/sys/fs/cgroup/system.slice/tierpilotd.service

die() { echo "$*"; journalctl -b -o cat -u tierpilotd -u tierpilot-coordinator; exit 1; }
# `put NAME COMMAND...`: its output comes back, also when it fails.
put() { answer=$1; shift; "$@" >"/out/$answer" 2>&1; }
until_true() {
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 1; done
  die "never true: $*"
}
main_pid() { systemctl show -P MainPID "$1"; }
node_is_up() { tierctl node list -j | grep -q '"state": "up"'; }
was_restarted() {
  [ "$(systemctl show -P NRestarts tierpilotd)" -ge 1 ] && systemctl is-active tierpilotd
}
# Also by another daemon than that of the process $1.
task_runs() { cat $group/task-3.*/cgroup.procs | grep . && [ "$(main_pid tierpilotd)" != "$1" ]; }
has_gpu() { tierctl node show -j localhost | grep -q GPU-late; }
task_4_runs() { tierctl task show -j 4 | grep -q '"state": "running"'; }

for name in tierpilotd tierpilot-coordinator; do
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "/etc/systemd/system/$name.service")
  mkdir -p "${program%/*}"
  ln -s "/usr/bin/$name" "$program"
done
# What the example leaves to measurements: emulated nodes are equally fast.
sed -i -e 's/^#fast_budget.*/fast_budget = "64MiB"/' -e 's/^#slow_budget.*/slow_budget = "64MiB"/' \
  -e 's/^#fast_node .*/fast_node = 0/' -e 's/^#slow_node .*/slow_node = 1/' \
  -e 's/^#slow_kind.*/slow_kind = "node"/' -e 's/^#rounds.*/rounds = 1/' \
  /etc/tierpilot/tierpilotd.toml
# On a busy host a second of the guest can last half a minute.
sed -i 's/^#duration_ms.*/duration_ms = 30000/' /etc/tierpilot/coordinator.toml

# Returns when the services have said that they are ready.
systemctl start tierpilot-coordinator || die "no coordinator"
systemctl start tierpilotd || die "no daemon"
until_true node_is_up
for name in tierpilotd tierpilot-coordinator; do
  put "$name.show" systemctl show "$name"
  put "$name.status" cat "/proc/$(main_pid "$name")/status"
done
put node.json tierctl node show -j localhost
put sockets ls -l /run/tierpilot

# A task that uses data and tells where it runs, and one that needs more memory than it asked for.
tierctl dataset add numbers --random 4MiB || die "no dataset"
tierctl task submit --wait --dataset numbers --memory 64MiB -- sh -c \
  'cat /proc/self/cgroup; grep -E "^(Uid|CapEff|NoNewPrivs|Seccomp):" /proc/self/status'
put task.json tierctl task show -j 1
put task.log tierctl task logs 1
tierctl task submit --wait --memory 32MiB -- \
  sh -c 'head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null'
put memory.json tierctl task show -j 2

# A stopped daemon: the watchdog has it replaced, and its task runs again.
mkdir -p /etc/systemd/system/tierpilotd.service.d
printf '[Service]\nWatchdogSec=20\n' >/etc/systemd/system/tierpilotd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart tierpilotd || die "no restart"
tierctl task submit -- sleep 1000
until_true task_runs none
stopped=$(main_pid tierpilotd)
kill -STOP "$stopped"
until_true was_restarted
until_true task_runs "$stopped"
put watchdog.show systemctl show tierpilotd
put watchdog.json tierctl task show -j 3

# The end: nothing of the service is left.
processes() { ps -o user,args | grep '^tierpilo' | grep -v coordinator; }
put running.txt processes
systemctl stop tierpilotd || die "no stop"
put stopped.show systemctl show tierpilotd
put left.txt processes
[ ! -e $group ] || put left_cgroups.txt find $group

# A stop has the time that node.drain_s gives, where systemd alone would not wait as long.
sed -i 's/^#drain_s.*/drain_s = 300/' /etc/tierpilot/tierpilotd.toml
printf '[Service]\nTimeoutStopSec=5\n' >/etc/systemd/system/tierpilotd.service.d/stop.conf
systemctl daemon-reload
systemctl start tierpilotd || die "no second start"
until_true node_is_up
tierctl task cancel 3
tierctl task submit -- sleep 20
until_true task_4_runs
systemctl stop tierpilotd || die "no patient stop"
put drained.show systemctl show tierpilotd
put drained.json tierctl task show -j 4

# A driver that answers late: the service begins anew then, with its GPU.
mkdir /etc/driver
echo GPU-late >/etc/driver/gpus
: >/etc/driver/mute
printf '[Service]\nEnvironment=FAKE_NVML=/etc/driver LD_LIBRARY_PATH=/usr/lib/driver\n' \
  >/etc/systemd/system/tierpilotd.service.d/driver.conf
systemctl daemon-reload
systemctl start tierpilotd || die "no start beside a driver that hangs"
until_true node_is_up
put no_driver.json tierctl node show -j localhost
rm /etc/driver/mute
until_true has_gpu
put late_driver.show systemctl show tierpilotd
systemctl stop tierpilotd || die "no last stop"

systemctl stop tierpilot-coordinator || die "no stop of the coordinator"
put coordinator_stopped.show systemctl show tierpilot-coordinator
put journal.txt journalctl -b -o cat -u tierpilotd -u tierpilot-coordinator
cat /proc/uptime
