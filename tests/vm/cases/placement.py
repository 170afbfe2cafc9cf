from harness import gtest


def check(out):
    gtest.assert_passed(out, "unit_heat", "FaultAddresses.SeeTheFirstTouchesOfThisProcess")
    gtest.assert_passed(out, "unit_mover", "MoverCrash.KilledInMidMoveItLeavesMemoryWhole")
    gtest.assert_passed(out, "unit_paging_loop", "PagingNumaTest.FollowsTheHotQuarter",
                        "PagingNumaTest.BalanceStopsWhereTheLatenciesAreLevel")
    assert out.text("kdamonds").strip() == "0", "kdamonds were left behind"
