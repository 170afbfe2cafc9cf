CAPABILITIES = {"cap_bpf", "cap_perfmon", "cap_sys_nice", "cap_sys_ptrace"}
# Their numbers in linux/capability.h.
CAPABILITY_BITS = 1 << 39 | 1 << 38 | 1 << 23 | 1 << 19


def fields(text, separator):
    """{"Uid": "0 0 0 0"} of lines such as "Uid:\t0 0 0 0"."""
    pairs = (line.partition(separator) for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def check_unit(out):
    """Ready by notification, watched, and with no more than the unit file gives."""
    shown = fields(out.text("tierpilotd.show"), "=")
    for name, value in {"Type": "notify", "ActiveState": "active", "SubState": "running",
                        "WatchdogUSec": "30s", "NRestarts": "0", "User": "tierpilot",
                        "Delegate": "yes", "KillMode": "mixed", "NoNewPrivileges": "yes",
                        "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes",
                        "ProtectKernelTunables": "yes", "RestrictNamespaces": "yes"}.items():
        assert shown.get(name) == value, f"{name}={shown.get(name)}, not {value}"
    assert shown["StatusText"].startswith("Registered with"), shown["StatusText"]
    assert set(shown["CapabilityBoundingSet"].split()) == CAPABILITIES
    assert set(shown["AmbientCapabilities"].split()) == CAPABILITIES

    coordinator = fields(out.text("tierpilot-coordinator.show"), "=")
    assert coordinator["ActiveState"] == "active" and coordinator["Type"] == "notify"
    # An empty set is not shown.
    assert coordinator.get("CapabilityBoundingSet", "") == ""


def check_processes(out):
    daemon = fields(out.text("tierpilotd.status"), ":")
    coordinator = fields(out.text("tierpilot-coordinator.status"), ":")
    for process, capabilities in (daemon, CAPABILITY_BITS), (coordinator, 0):
        # None is ambient: what the daemon starts itself (tasks, health commands) gets none of them.
        wanted = {"CapEff": capabilities, "CapBnd": capabilities, "CapAmb": 0}
        for name, value in wanted.items():
            assert int(process[name], 16) == value, f"{name} {process[name]}"
        assert process["Seccomp"] == "2" and process["NoNewPrivs"] == "1"
        assert "0" not in process["Uid"].split(), process["Uid"]
    sockets = out.text("sockets")
    assert "coordinator.sock" in sockets and "data.sock" in sockets, sockets


def check_tasks(out):
    info = out.json("node.json")["node"]["info"]
    # Only what the unit grants: the cgroup is delegated, and moving pages and BPF are allowed.
    assert all(limit["on"] for limit in info["limits"]), info["limits"]
    assert {tier["role"]: tier["place"] for tier in info["tiers"]} == {
        "fast": "NUMA node 0", "slow": "NUMA node 1"}
    # Which of two equally fast nodes measures as the faster one is chance.
    assert any((tier["evict_gb_per_s"] or 0) > 0 for tier in info["tiers"]), info["tiers"]
    features = {feature["name"]: feature for feature in info["features"]}
    assert features["migration"]["on"] and features["reclaim"]["on"], features

    task = out.json("task.json")["task"]
    assert task["state"] == "succeeded" and task["served"]["promoted_bytes"] == 4 << 20, task
    log = out.text("task.log")
    assert "0::/system.slice/tierpilotd.service/task-1.1\n" in log, log
    of_task = fields(log, ":")
    assert int(of_task["CapEff"], 16) == 0 and of_task["Seccomp"] == "2", log
    assert out.json("memory.json")["task"]["exit"]["how"] == "memory_limit"


def check_end(out):
    shown = fields(out.text("watchdog.show"), "=")
    assert shown["ActiveState"] == "active" and int(shown["NRestarts"]) >= 1, shown
    task = out.json("watchdog.json")["task"]
    assert task["state"] == "running" and task["attempt"] > 1, task
    assert "Failed with result 'watchdog'" in out.text("journal.txt")
    for name in ("stopped.show", "drained.show", "coordinator_stopped.show"):
        shown = fields(out.text(name), "=")
        assert shown["ActiveState"] == "inactive" and shown["Result"] == "success", name
    task = out.json("drained.json")["task"]
    assert task["state"] == "succeeded" and task["attempt"] == 1, task
    shown = fields(out.text("late_driver.show"), "=")
    assert shown["ActiveState"] == "active" and shown["NRestarts"] == "1", shown
    assert "status=75" in out.text("journal.txt")
    assert "GPU-late" not in out.text("no_driver.json")
    assert "sleep 1000" in out.text("running.txt"), out.text("running.txt")
    assert out.text("left.txt") == "", out.text("left.txt")
    assert "left_cgroups.txt" not in out.files, out.text("left_cgroups.txt")


def check(out):
    check_unit(out)
    check_processes(out)
    check_tasks(out)
    check_end(out)
