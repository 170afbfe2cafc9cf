from harness import gtest, tiers


def demoted_by_the_kernels_count(out):
    before, after = (tiers.vmstat(out, f"{when}_demotion") for when in ("before", "after"))
    return sum(after[name] - before[name] for name in after if name.startswith("pgdemote_"))


def check(out):
    gtest.assert_passed(out, "unit_probe_passive",
                        "PassiveProbe.PagesMovedBetweenNodesAreSeen",
                        "PassiveProbe.FaultsOfAllTasksOfAGroupAreCounted",
                        "PassiveNodes.MovedPagesAreCountedBySourceAndTarget",
                        "PassiveNodes.MovedPagesAreCountedForTheCgroupThatTheyAreChargedTo",
                        "PassiveNodes.WithoutAMemoryCgroupAGroupsOwnCallsAreCounted",
                        "PassiveNodes.DurationsOfSinglePagesAreSampled",
                        "PassiveNodes.SingleCallsOfManyThreadsAreSampledAlike",
                        "PassiveTurns.CallsThatAreTooManyAreWatchedInTurnsAndCountedByTheKernel",
                        "PassiveTurns.ATurnsEdgesLeaveNoCallWithoutItsNodes",
                        "PassiveTurns.WhenCallsGetFewTheyAreAllWatchedAgain",
                        "PassiveNodes.EventsNameTheirNodes",
                        "PassiveNodes.ATargetThatAPolicyChoosesIsNotGuessed",
                        "PassiveNodes.FaultTimesAreKeptByNode",
                        "PassiveNodes.HintFaultsAreCountedAsTheKernelCountsThem")

    waits = {row["kind"]: row for row in out.json("compaction.json")["waits"]}
    assert waits["compaction"]["count"] > 0 and waits["compaction"]["p99_us"] > 0, waits

    seen = out.json("demotion.json")
    demoted = [row for row in seen["migrations"] if row["reason"] == "MR_DEMOTION"]
    assert [(row["from_node"], row["to_node"]) for row in demoted] == [(0, 1)], demoted
    expected = demoted_by_the_kernels_count(out)
    pages = demoted[0]["pages_moved"]
    assert expected > 0 and abs(pages - expected) <= expected * 0.03, (pages, expected)
    assert demoted[0]["gb_per_s"] > 0, demoted
    cold = [row for row in seen["cgroups"] if row["reason"] == "MR_DEMOTION"]
    assert [(row["cgroup"], row["from_node"], row["to_node"]) for row in cold] == [("cold", 0, 1)]
    assert abs(cold[0]["pages_moved"] - expected) <= expected * 0.05, (cold, expected)
    waits = {row["kind"]: row for row in seen["waits"]}
    assert waits["memcg reclaim"]["count"] > 0, waits

    moved = [line.split() for line in out.text("trace.txt").splitlines()[1:]]
    assert any(line[1:4] == ["0", "1", "MR_SYSCALL"] for line in moved), out.text("trace.txt")[:500]
    assert out.text("trace_status").strip() == "0"

    features = {row["feature"]: row for row in out.json("features.json")["features"]}
    for name in ("migration", "compaction", "numa_hint", "fault_time"):
        assert features[f"observe {name}"]["on"], features[f"observe {name}"]
    assert not features["observe migration"]["reason"], features["observe migration"]
