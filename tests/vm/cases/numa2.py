from harness import gtest, tiers


def check(out):
    tiers.assert_as_declared(out.json("tiers.json"), out.machine)

    moved = tiers.vmstat(out, "after")["pgmigrate_success"]
    moved -= tiers.vmstat(out, "before")["pgmigrate_success"]
    assert moved >= 4096, f"only {moved} pages moved"
    # Emulated nodes are equally fast, so either may be the one to evict from.
    probed = tiers.by_node(out.json("eviction.json"))
    assert probed.keys() == {0, 1}
    evicting = [tier for tier in probed.values() if tier["evict_gb_per_s"] is not None]
    assert len(evicting) == 1, probed
    assert evicting[0]["evict_gb_per_s"] > 0 and evicting[0]["promote_gb_per_s"] > 0, evicting

    gtest.assert_passed(out, "unit_probe_active", "Transfer.BetweenTwoNodesMovesPages")
    gtest.assert_passed(out, "unit_pool")
