#!/usr/bin/env python3
"""tools/quickstart swap, small: what it writes is whole, and what must hold of it holds.

Arguments: the demo's folder, the Python module's, libtierpilot-swap, tierpilot-swap.
"""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

DEMO, MODULES, LIBRARY, PROGRAM = sys.argv[1:]
POLICY_KEYS = {
    "name", "fits", "largest_batch", "samples_per_s", "relative_speed", "device_peak_bytes",
    "host_bytes_by_tier", "stall_ms_per_iteration", "gradients_equal",
}


def command(*options):
    return [
        sys.executable, f"{DEMO}/demo.py", f"--modules={MODULES}", f"--library={LIBRARY}",
        f"--program={PROGRAM}", "--blocks=1", *options,
    ]


def run(*options):
    said = command("--iterations=5", *options)
    return subprocess.run(said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500)


def check(condition, text):
    if not condition:
        sys.exit(f"failed: {text}")


def children_of(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as listed:
        return [int(pid) for pid in listed.read().split()]


def is_there(pid):
    """And no zombie, which is gone but for who asks how it ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def check_ctrl_c():
    """As a terminal sends it: to the whole group."""
    running = subprocess.Popen(command("--iterations=10000", "--batch=8", "--budget=1GiB"), start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while (line := running.stdout.readline()) and " step 2 " not in line:
        pass
    trainings = children_of(running)
    check(len(trainings) == 2, f"no trainings: {line}")
    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=100)
    check(running.returncode == 130, f"status {running.returncode} after Ctrl-C: {said}")
    check("Traceback" not in said and "KeyboardInterrupt" not in said, f"after Ctrl-C: {said}")
    until = time.monotonic() + 60
    while any(map(is_there, trainings)) and time.monotonic() < until:
        time.sleep(0.1)
    check(not any(map(is_there, trainings)), "trainings are left after Ctrl-C")


def check_that_nothing_fits(report):
    """In less than the interpreter alone takes. Of plain training and a policy: what keeps the others from it is the same."""
    sys.path.insert(0, DEMO)
    import demo
    import race

    race.POLICIES[:] = ["plain", "swap"]
    sys.argv[:] = command("--iterations=5", "--batch=8", "--budget=16MiB", "--seconds=0", f"--json={report}")[1:]
    with contextlib.redirect_stdout(io.StringIO()):
        demo.main()
    said = json.loads(report.read_text())
    check([policy["fits"] for policy in said["policies"]] == [False, False], "nothing fits in 16 MiB")


def check_that_each_has_time():
    """However long the first ones take, the last policy's largest batch is looked for."""
    sys.path.insert(0, DEMO)
    import types

    import demo

    class Slow:
        def __init__(self, options, view, deadline):
            self.deadline = deadline

        def run(self, *_):
            tries = 0
            while not self.deadline.passed():
                time.sleep(0.01)
                tries += 1
            return tries or None

    racers = [types.SimpleNamespace(name=name, fits=False, child=types.SimpleNamespace(first_bytes=1)) for name in "abcd"]
    searches, demo.Search = demo.Search, Slow
    try:
        found = demo.search_largest(types.SimpleNamespace(seconds=1.0), types.SimpleNamespace(racers=racers), None)
    finally:
        demo.Search = searches
    check(all(found.values()), f"some had no time: {found}")


def check_view():
    """The line of a step has what the step waited, not what all did."""
    sys.path.insert(0, DEMO)
    from race import Racer
    from view import View

    class Training:
        failed, peak_bytes = None, 1 << 20

    racer, view = Racer("swap", Training), View(1 << 30)
    for number, stall_ms in enumerate((300, 500, 500)):
        racer.steps.append({"seconds": 1.0, "swap": {"stall_ns": stall_ms * 10**6}})
        line = view._row(number, racer)
        check(line.endswith(f"stalled {(300, 200, 0)[number]} ms"), line)


def check_picture():
    """From the first save to the end of the step, with what is computed again."""
    sys.path.insert(0, DEMO)
    from picture import picture

    life = {"bytes": 8, "saved_ns": 2000, "left_ns": -1, "fetched_ns": -1, "back_ns": -1, "ended_ns": 3000}
    step = {"step_ns": 3000, "storages": [life], "segments": [
        {"began_ns": 2500, "ended_ns": 2750, "again": True}, {"began_ns": 2750, "ended_ns": 3000, "again": False}]}

    def drawn(step):
        bars = xml.dom.minidom.parseString(picture(step, "of a test")).getElementsByTagName("rect")
        return [(float(bar.getAttribute("x")), float(bar.getAttribute("width")), title[0].firstChild.data)
                for bar in bars if (title := bar.getElementsByTagName("title"))]

    stored, again = drawn(step)
    check(stored[:2] == (20, 920) and "storage 0" in stored[2], f"a storage from its save on: {stored}")
    check(again[:2] == (480, 230) and "segment 0" in again[2], f"a segment that is computed again: {again}")
    check(len(drawn({"step_ns": 3000, "storages": [life]})) == 1, "a step without segments")
    check(drawn({"step_ns": 3000, "storages": []}) == [], "a step without saves")


def main():
    if not importlib.util.find_spec("torch"):  # to import it takes a second
        print(f"skipped: no PyTorch for {sys.executable}")
        sys.exit(77)
    check_that_each_has_time()
    check_view()
    check_picture()
    with tempfile.TemporaryDirectory() as folder:
        report, drawn = pathlib.Path(folder) / "swap.json", pathlib.Path(folder) / "swap.svg"
        ended = run("--batch=8", "--budget=1GiB", "--seconds=0", f"--json={report}", f"--svg={drawn}")
        print(ended.stdout)
        check(ended.returncode == 0, f"status {ended.returncode}")
        said = json.loads(report.read_text())
        check(said["schema"] == 1, "schema")
        check(len(said["tiers"]) >= 2, "tiers")
        check([p["name"] for p in said["policies"]] == ["plain", "swap-all", "capuchin", "swap"], "policies")
        for policy in said["policies"]:
            check(POLICY_KEYS <= policy.keys(), f"keys of {policy['name']}")
            check(policy["fits"] and policy["gradients_equal"], f"{policy['name']} in 1 GiB")
            check(0 < policy["device_peak_bytes"] <= 1 << 30, f"peak of {policy['name']}")
        check(sum(said["policies"][1]["host_bytes_by_tier"].values()) > 1 << 20, "swap-all swaps")
        check([row["iteration"] for row in said["learning"]] == [1, 2, 3, 4, 5], "learning")
        xml.dom.minidom.parse(str(drawn))

        check_that_nothing_fits(report)
        check(run("--batch=0").returncode == 2, "a batch of nothing")
        check_ctrl_c()


if __name__ == "__main__":
    main()
