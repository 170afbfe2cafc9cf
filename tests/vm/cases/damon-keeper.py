import json
import re


def fields(text, separator):
    pairs = (line.partition(separator) for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def shares(log):
    """Of the hot quarter on the fast node, as the task told it second by second."""
    return [json.loads(line)["shares"][0] for line in log.splitlines() if line.startswith('{"s"')]


def pages_by_node(numa_maps):
    """Of the largest anonymous mapping."""
    largest = max(numa_maps.splitlines(),
                  key=lambda line: int((re.search(r"anon=(\d+)", line) or [0, 0])[1]))
    return {int(node): int(count) for node, count in re.findall(r"N(\d+)=(\d+)", largest)}


def check_keeper(out):
    shown = fields(out.text("damon.show"), "=")
    # An empty set is not shown.
    assert shown.get("CapabilityBoundingSet", "") == "" and shown["PrivateNetwork"] == "yes", shown
    status = fields(out.text("keeper.status"), ":")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, f"{name} {status[name]}"
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", status
    assert int(status["VmRSS"].split()[0]) < 12 << 10, status["VmRSS"]


def check_placement(out):
    feature = {f["name"]: f for f in out.json("node.json")["node"]["info"]["features"]}["placement"]
    assert feature["on"], feature
    assert "tracker damon through tierpilot-damon" in feature["reason"], feature
    assert "only advised" not in feature["reason"], feature
    task = out.json("hot.json")["task"]
    assert task["state"] == "succeeded", task
    for name in ("hot.log", "foreign.log"):
        seen = shares(out.text(name))
        assert seen[0] < 0.1 and seen[-1] > 0.9, (name, seen)
    # A quarter of 64 MiB is 4,096 pages.
    assert pages_by_node(out.text("foreign_maps")).get(0, 0) > 3500, out.text("foreign_maps")


def check_clients(out):
    tracker = out.json("own.json")["tracker"]
    assert tracker["name"] == "damon" and tracker["way"] == "through tierpilot-damon", tracker
    assert "CAP_SYS_PTRACE" in out.text("others.err"), out.text("others.err")
    assert "group tierpilot" in out.text("outsider.err"), out.text("outsider.err")
    assert out.json("root.json")["tracker"]["way"] == "through tierpilot-damon"
    assert out.json("idle.json")["tracker"]["way"] == "through its files"


def check(out):
    check_keeper(out)
    check_placement(out)
    check_clients(out)
    for name in ("killed", "after"):
        assert out.text(name) == out.text("before"), (name, out.text(name))
    assert fields(out.text("stopped.show"), "=")["Result"] == "success", out.text("stopped.show")
    assert out.text("left") == "", out.text("left")
