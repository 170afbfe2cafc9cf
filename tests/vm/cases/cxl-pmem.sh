#!/bin/sh
show() { tiertool tier show -j --no-measure >"/out/$1.json" || exit 1; }
die() { echo "$*"; tail -n 50 /out/coordinator.log /out/daemon.log; exit 1; }
until_true() {
  for _ in $(seq 200); do "$@" >/dev/null 2>&1 && return; sleep 0.5; done
  die "never true: $*"
}
node_has() { tierctl node show -j guest >"/out/node-$1.json" && grep -q "$2" "/out/node-$1.json"; }
node_lacks() { tierctl node show -j guest >"/out/node-$1.json" && ! grep -q "$2" "/out/node-$1.json"; }

mkdir -p /run/tierpilot /etc/tierpilot
printf '[policy]\nactive = "least-loaded"\n[lease]\nduration_ms = 30000\n' \
  >/etc/tierpilot/coordinator.toml
printf '[node]\nname = "guest"\n[pool]\nfast_budget = "16MiB"\nslow_budget = "16MiB"\n[probe]\nrounds = 1\n' \
  >/etc/tierpilot/tierpilotd.toml
tierpilot-coordinator --config /etc/tierpilot/coordinator.toml >/out/coordinator.log 2>&1 &
until_true test -S /run/tierpilot/coordinator.sock
tierpilotd --config /etc/tierpilot/tierpilotd.toml >/out/daemon.log 2>&1 &
daemon=$!
until_true node_has before '"tier": "dram0"'

show before
echo offline >/sys/devices/system/memory/auto_online_blocks
cxl create-region -m -d decoder0.0 -w 1 mem0 || exit 1
ndctl create-namespace -m devdax -r region0 -f || exit 1
show devdax
daxctl reconfigure-device --mode=system-ram dax0.0 || exit 1
show online
until_true node_has online '"tier": "cxl1"'
tiertool probe eviction -j --rounds 1 --timeout 100 >/out/eviction.json || exit 1
tiertool probe latency -j --rounds 7 --footprint 16MiB --timeout 100 >/out/latency.json || exit 1
daxctl offline-memory dax0.0 || exit 1
show offline
until_true node_lacks offline '"tier": "cxl1"'
kill -0 "$daemon" || die "the daemon has ended"
