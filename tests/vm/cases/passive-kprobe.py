from harness import gtest


def check(out):
    gtest.assert_passed(out, "unit_probe_passive",
                        "PassiveProbe.FaultsOfAllTasksOfAGroupAreCounted",
                        "PassiveNodes.MovedPagesAreCountedBySourceAndTarget",
                        "PassiveNodes.MovedPagesAreCountedForTheCgroupThatTheyAreChargedTo",
                        "PassiveNodes.WithoutAMemoryCgroupAGroupsOwnCallsAreCounted",
                        "PassiveNodes.DurationsOfSinglePagesAreSampled",
                        "PassiveNodes.SingleCallsOfManyThreadsAreSampledAlike",
                        "PassiveNodes.EventsNameTheirNodes",
                        "PassiveNodes.ATargetThatAPolicyChoosesIsNotGuessed",
                        "PassiveNodes.FaultTimesAreKeptByNode",
                        "PassiveNodes.HintFaultsAreCountedAsTheKernelCountsThem")
    features = {row["feature"]: row for row in out.json("features.json")["features"]}
    migration = features["observe migration"]
    assert migration["on"] and not migration["reason"], migration
