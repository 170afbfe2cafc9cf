#!/bin/sh
cd /sys/fs/cgroup || exit 1
echo '+cpu +cpuset +memory +io +pids' >cgroup.subtree_control
mkdir tierpilot no-cpuset
echo '+cpu +cpuset +memory +io +pids' >tierpilot/cgroup.subtree_control
echo '+cpu +memory' >no-cpuset/cgroup.subtree_control

failed=0
/vm/unit-test vm_task_limits || failed=1
# The others need no cgroup.
/vm/unit-test unit_exec 'RealCgroups.*' || failed=1
exit $failed
