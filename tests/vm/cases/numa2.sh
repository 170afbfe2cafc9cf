#!/bin/sh
tiertool tier show -j --timeout 100 >/out/tiers.json || exit 1
cp /proc/vmstat /out/vmstat_before
tiertool probe eviction -j --timeout 100 >/out/eviction.json || exit 1
cp /proc/vmstat /out/vmstat_after

failed=0
/vm/unit-test unit_probe_active 'Transfer.*:MeasureTiers.*:Sweep.*' || failed=1
/vm/unit-test unit_pool || failed=1
exit $failed
