#!/bin/sh
echo 0 >/proc/sys/kernel/numa_balancing
failed=0
/vm/unit-test unit_paging_loop >/out/loop.txt || failed=1
cat /out/loop.txt
exit $failed
