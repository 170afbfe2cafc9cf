#!/bin/sh
# What tasks and this script say goes to the host by the third serial port, and so does what it says.
die() { echo "WRONG: $*" >&3; tail -n 40 /out/*.log; exit 1; }
stty -F /dev/ttyS2 raw -echo
ln -s /dev/ttyS2 /heard
exec 3<>/dev/ttyS2  # as long as it is open, nothing of it is dropped
mount | grep -q '^/dev/vda on /mnt type ext4' || die "the disk cannot be mounted"
echo booted >&3
read -r boot <&3
mkdir -p /mnt/work /mnt/slow /dev/shm/fast /etc/tierpilot
cat >/etc/tierpilot/coordinator.toml <<END
[coordinator]
state_dir = "/mnt/state"
[listen]
unix = "unix:/run/c.sock"
[lease]
duration_ms = 5000
[queue]
max_attempts = 100
[policy]
active = "least-loaded"
END
cat >/etc/tierpilot/tierpilotd.toml <<END
[node]
name = "guest"
coordinator = "unix:/run/c.sock"
data_listen = "unix:/run/data.sock"
units = 4
memory = "64MiB"
work_dir = "/mnt/work"
[pool]
fast_dir = "/dev/shm/fast"
fast_budget = "16MiB"
slow_dir = "/mnt/slow"
slow_budget = "16MiB"
[probe]
calibrate = false
passive = false
END
tierpilot-coordinator --config /etc/tierpilot/coordinator.toml >/out/coordinator.log 2>&1 &
tierpilotd --config /etc/tierpilot/tierpilotd.toml >/out/daemon.log 2>&1 &
vm_acknowledged unix:/run/c.sock "$boot" <&3 >&3 2>/out/load.log || die "the load failed"
[ "$boot" = last ] || die "the load has ended"
tierctl --connect unix:/run/c.sock dataset verify d >/out/verify.log || die "the dataset is damaged"
