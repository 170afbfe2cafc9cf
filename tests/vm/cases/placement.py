from harness import gtest


def check(out):
    gtest.assert_passed(out, "unit_heat", "FaultAddresses.SeeTheFirstTouchesOfThisProcess")
    gtest.assert_passed(out, "unit_mover", "MoverCrash.KilledInMidMoveItLeavesMemoryWhole")
    gtest.assert_passed(out, "unit_placement_loop", "PlacementNumaTest.FollowsTheHotQuarter",
                        "PlacementNumaTest.BalanceStopsWhereTheLatenciesAreLevel")
    assert out.text("kdamonds").strip() == "0", "kdamonds were left behind"
