def nodes(shown):
    return {node["id"]: node for node in shown["topology"]["nodes"] if node["memory_total_bytes"]}


def by_kind(answer):
    return {tier["kind"]: tier for tier in answer["tiers"]}


def check_daemon(out):
    """What the coordinator knows of a daemon that was started before the device came."""
    shown = {name: out.json(f"node-{name}.json")["node"]["info"] for name in ("before", "online", "offline")}
    # A guest's folders are in memory: whether they come before it is chance.
    tiers = {name: {tier["tier"] for tier in node["tiers"]} for name, node in shown.items()}
    assert "cxl1" in tiers["online"] and tiers["before"] == tiers["offline"], tiers
    instances = {node["instance"] for node in shown.values()}
    assert len(instances) == 1, "the daemon was started again"


def check(out):
    check_daemon(out)
    before, devdax, online, offline = (
        out.json(f"{name}.json") for name in ("before", "devdax", "online", "offline"))
    assert len(before["topology"]["cxl"]["memdevs"]) == 1
    assert nodes(before).keys() == nodes(devdax).keys() == nodes(offline).keys() == {0}
    assert devdax["topology"]["dax_devices"][0]["driver"] == "device_dax"

    # Memory comes in blocks of 128 MiB, and labels and the map of pages take some.
    assert 512 << 20 < nodes(online)[1]["memory_total_bytes"] < out.machine.cxl_pmem_mib << 20
    assert online["topology"]["cxl"]["regions"][0]["nodes"] == [1], online["topology"]["cxl"]
    tiers = by_kind(online)
    assert tiers.keys() == {"dram", "cxl"} and tiers["cxl"]["numa_node"] == 1, list(tiers)

    moved = by_kind(out.json("eviction.json"))
    assert moved["dram"]["evict_gb_per_s"] > 0 and moved["dram"]["promote_gb_per_s"] > 0, moved
    # Every access to emulated CXL leaves the translated code. Rounds in turn, as a host that slows
    # down for a second makes a single round of DRAM as slow.
    probed = by_kind(out.json("latency.json"))
    far, near = probed["cxl"], probed["dram"]
    print(f"dram {near['latency_ns']['p50']} ns, cxl {far['latency_ns']['p50']} ns, "
          f"{near['rounds']} and {far['rounds']} rounds")
    assert far["latency_ns"]["p50"] > near["latency_ns"]["p50"], probed
    assert [tier["kind"] for tier in offline["tiers"]] == ["dram"], offline["tiers"]
