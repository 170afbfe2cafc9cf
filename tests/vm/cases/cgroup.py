from harness import gtest


def check(out):
    limits = gtest.results(out, "vm_task_limits")
    assert set(limits.values()) == {"passed"}, limits
    gtest.assert_passed(out, "unit_exec", "RealCgroups.ATaskRunsInItsOwnCgroupWhichIsRemoved",
                        "RealCgroups.AForkBombEnds",
                        "RealCgroups.AKilledSupervisorsCgroupIsEmptiedAndRemoved")
