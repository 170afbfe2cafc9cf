from harness import gtest


def check(out):
    gtest.assert_passed(
        out, "unit_paging_loop", "PagingNumaTest.FollowsTheHotQuarter",
        "PagingNumaTest.OfThreeTiersTheMiddleOneTakesWhatTheFastestHasNoRoomFor")
