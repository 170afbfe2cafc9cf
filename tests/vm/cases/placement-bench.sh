#!/bin/sh
small-machine
# Long enough for the hot quarter to be found on a busy host too: the share is that of the last 40 %.
bench_placement --rounds 1 --bytes 32MiB --fast 10MiB --seconds 8 --interval 0.5 --half-life 1 \
  --cpu 30 --programs hot-set --report /out/hot-set.json || exit
bench_placement --rounds 1 --bytes 32MiB --fast 10MiB --seconds 1 --interval 0.5 \
  --cpu 30 --programs streaming,key-value --report /out/others.json || exit
cat /proc/sys/kernel/numa_balancing >/out/numa_balancing
cat /sys/kernel/mm/numa/demotion_enabled >/out/demotion
cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >/out/kdamonds
