#!/bin/sh
small-machine
bench() { bench_placement --rounds 1 --bytes 32MiB --fast 10MiB --interval 0.5 --cpu 30 "$@"; }
# Long enough for the hot quarter to be found on a busy host too: the share is that of the last 40 %.
bench --seconds 8 --half-life 1 --programs hot-set --rows "first touch,tierpilot" --report /out/hot-set.json || exit
bench --seconds 1 --programs hot-set --report /out/all.json || exit
bench --seconds 1 --programs streaming,key-value --rows "first touch,tierpilot" --report /out/others.json || exit
cat /proc/sys/kernel/numa_balancing >/out/numa_balancing
cat /sys/kernel/mm/numa/demotion_enabled >/out/demotion
cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >/out/kdamonds
