from harness import tiers


def check(out):
    shown = out.json("tiers.json")
    tiers.assert_as_declared(shown, out.machine)
    # The kernel demotes from tiers with smaller ids to those with larger ones.
    kernel_tiers = sorted(shown["topology"]["kernel_tiers"], key=lambda tier: tier["id"])
    assert [tier["nodes"] for tier in kernel_tiers] == [[0], [1], [2]], kernel_tiers

    probed = tiers.by_node(out.json("eviction.json"))
    evicting = [node for node, tier in probed.items() if tier["evict_gb_per_s"] is not None]
    assert len(evicting) == 2, f"all but the slowest tier evict; these do: {evicting}"
