#!/bin/sh
show() { tiertool tier show -j --no-measure >"/out/$1.json" || exit 1; }

show before
echo offline >/sys/devices/system/memory/auto_online_blocks
cxl create-region -m -d decoder0.0 -w 1 mem0 || exit 1
ndctl create-namespace -m devdax -r region0 -f || exit 1
show devdax
daxctl reconfigure-device --mode=system-ram dax0.0 || exit 1
show online
tiertool probe eviction -j --rounds 1 --timeout 100 >/out/eviction.json || exit 1
daxctl offline-memory dax0.0 || exit 1
show offline
