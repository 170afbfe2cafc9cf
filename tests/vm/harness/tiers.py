"""What `tiertool tier show -j` says, held against the machine that was declared."""

MIB = 1 << 20


def by_node(answer):
    return {tier["numa_node"]: tier for tier in answer["tiers"]}


def visible(machine):
    return {number: node for number, node in enumerate(machine.nodes) if not node.hidden}


def assert_as_declared(shown, machine):
    """Nodes, their memory, distances and HMAT figures; and a tier, measured, for each."""
    declared = visible(machine)
    nodes = {node["id"]: node for node in shown["topology"]["nodes"]}
    assert nodes.keys() == declared.keys(), f"nodes {list(nodes)}"
    for number, node in declared.items():
        found = nodes[number]
        # The kernel keeps some of it to itself.
        assert 0.8 * node.mib * MIB < found["memory_total_bytes"] <= node.mib * MIB, found
        assert bool(found["cpus"]) == (number == 0), found
        if number:
            assert nodes[0]["distance_to"][str(number)] == node.distance, nodes[0]
        if node.latency_ns:
            assert found["hmat"]["read_latency_ns"] == node.latency_ns, found
            assert found["hmat"]["read_bandwidth_mb_per_s"] == node.bandwidth_gb * 1024, found
            assert found["hmat"]["initiator_nodes"] == [0], found
    tiers = by_node(shown)
    assert tiers.keys() == declared.keys(), f"tiers {list(tiers)}"
    for tier in tiers.values():
        assert tier["latency_ns"]["p50"] > 0, tier
        assert tier["read_gb_per_s"] > 0 and tier["write_gb_per_s"] > 0, tier


def vmstat(out, when):
    lines = out.text(f"vmstat_{when}").splitlines()
    return {name: int(value) for name, value in map(str.split, lines)}
