#!/bin/sh
small-machine
# Emulated CPUs take a hundred times as long to move a page: more CPU time for the loop than its 5 %.
bench_placement --rounds 3 --bytes 32MiB --fast 10MiB --seconds 6 --interval 0.5 --cpu 30 \
  --timelines --report /out/placement.json
