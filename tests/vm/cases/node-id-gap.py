from harness import tiers


def check(out):
    shown = out.json("tiers.json")
    tiers.assert_as_declared(shown, out.machine)
    assert {node["id"] for node in shown["topology"]["nodes"]} == {0, 2}

    probed = tiers.by_node(out.json("eviction.json"))
    assert probed.keys() == {0, 2}
    assert any(tier["evict_gb_per_s"] for tier in probed.values()), probed
