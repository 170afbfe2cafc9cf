#!/bin/sh
echo 0 >/proc/sys/kernel/numa_balancing
failed=0
# Not what two tiers, or none, are enough for.
/vm/unit-test unit_paging_loop 'PagingNumaTest.FollowsTheHotQuarter:PagingNumaTest.OfThreeTiers*' >/out/loop.txt || failed=1
cat /out/loop.txt
exit $failed
