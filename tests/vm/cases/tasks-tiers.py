import json


def looks(out, name):
    """Shares of the task's pages on each node, as it told them one after the other."""
    task = out.json(f"{name}.json")["task"]
    assert task["state"] == "succeeded", (name, task["reason"], out.text(f"{name}.log"))
    return [json.loads(line)["shares"] for line in out.text(f"{name}.log").splitlines()]


def outcome(out, name):
    return out.json(f"{name}.json")["task"]["exit"]["memory_tier"]


def check_wishes(out):
    # Also after the daemon has had time to move them.
    for share in looks(out, "slow"):
        assert share[1] > 0.98, share
    assert looks(out, "fast")[0][0] > 0.98, looks(out, "fast")
    for name, first in ("interleave", 0.5), ("heap", 0.5), ("weights", 0.75):
        for share in looks(out, name):
            assert abs(share[0] - first) < 0.06, (name, share)
    assert outcome(out, "slow") == "preferred: NUMA node 1, the slowest tier"
    assert "interleaved over NUMA nodes 0-1" in outcome(out, "interleave")
    assert "heap 1:1" in outcome(out, "heap"), outcome(out, "heap")
    assert "only the heap 3:1" in outcome(out, "weights"), outcome(out, "weights")
    assert outcome(out, "hot") == ""


def check_placement(out):
    hot = [share[0] for share in looks(out, "hot")]
    assert hot[0] < 0.1 and hot[-1] > 0.9, hot
    node = out.json("node.json")["node"]
    feature = {f["name"]: f for f in node["info"]["features"]}["placement"]
    assert feature["on"] and "tracker damon" in feature["reason"], feature
    assert "node0 (90 ns), node1 (350 ns)" in feature["reason"], feature
    metrics = {metric["name"]: metric["value"] for metric in node["status"]["metrics"]}
    assert metrics["placement_promoted_bytes"] > 12 << 20, metrics
    assert metrics["placement_rounds"] > 1 and metrics["placement_cpu_s"] > 0, metrics


def check(out):
    check_wishes(out)
    check_placement(out)
    paused = out.json("paused.json")["task"]
    assert paused["state"] == "running" and paused["reason"] == "paused", paused
    assert out.text("kdamonds_after").strip() == "0", "kdamonds were left behind"
