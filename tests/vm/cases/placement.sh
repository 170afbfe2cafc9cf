#!/bin/sh
echo 0 >/proc/sys/kernel/numa_balancing
failed=0
/vm/unit-test unit_heat || failed=1
/vm/unit-test unit_mover || failed=1
/vm/unit-test unit_paging_loop >/out/loop.txt || failed=1
cat /out/loop.txt
cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >/out/kdamonds
exit $failed
