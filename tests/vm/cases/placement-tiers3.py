from harness import gtest


def check(out):
    gtest.assert_passed(
        out, "unit_placement_loop", "PlacementNumaTest.FollowsTheHotQuarter",
        "PlacementNumaTest.OfThreeTiersTheMiddleOneTakesWhatTheFastestHasNoRoomFor")
