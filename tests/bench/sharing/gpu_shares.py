#!/usr/bin/env python3
"""PyTorch jobs that share a real GPU: what each gets of it beside its share, what a limit of memory does, and what a crash does to
a neighbour.

    gpu_shares.py PROGRAMS [--mps auto|always|never] [--phases alone,beside,memory,crash] [--json FILE]

PROGRAMS is a build folder, or the prefix of an installation. A coordinator and a daemon are started on this machine in a folder of
their own, and ended. Each second of a job is matrix products or training steps, in turn, so that all do the same at a time.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gpu_share_jobs as jobs

HERE = pathlib.Path(__file__).resolve()
PHASES = ("alone", "beside", "memory", "crash")
SHARES = {"alone": "1000", "small": "300:4GiB", "large": "600:8GiB", "greedy": "100:2GiB", "crash": "300:2GiB"}
PROGRAMS = {"tierpilotd": "daemon", "tierpilot-coordinator": "coordinator", "tierctl": "tools/tierctl", "tiertool": "tools/tiertool"}
PASSED_ON = ("LD_LIBRARY_PATH", "PYTHONPATH", "FAKE_NVML")  # to jobs, which else have nothing of this environment
SHOWN = ("state", "attempt", "exit", "reason")
ENDED = ("succeeded", "failed", "cancelled")
START_S = 25  # of a job: MPS begins, PyTorch is loaded


def find_program(root, name):
    for folder in (PROGRAMS[name], "bin", "sbin", "libexec/tierpilot"):
        if os.access(root / folder / name, os.X_OK):
            return str(root / folder / name)
    sys.exit(f"{root}: there is no {name}")


class Cluster:
    """A coordinator and a node; `deadline` bounds all waits."""

    def __init__(self, options, folder, fast):
        self.options, self.folder, self.fast = options, folder, fast
        self.deadline = time.monotonic() + options.seconds
        self.programs = {name: find_program(options.programs, name) for name in PROGRAMS}
        self.address = f"unix:{folder}/c.sock"
        self.processes, self.tasks = {}, {}

    def start(self):
        control = shutil.which("nvidia-cuda-mps-control") if not self.options.mps_control else self.options.mps_control
        sharing = f'gpus = ["all"]\nmps = "{self.options.mps}"\n' + (f'mps_control = "{control}"\n' if control else "")
        (self.folder / "coordinator.toml").write_text(
            f'[coordinator]\nstate_dir = "{self.folder}/state"\n[listen]\nunix = "{self.address}"\n'
            '[policy]\nactive = "least-loaded"\n[sharing]\npolicy = "best-fit"\nperiod_s = 1\n', encoding="utf-8")
        for name in ("work", "slow"):
            (self.folder / name).mkdir()
        (self.folder / "tierpilotd.toml").write_text(
            f'[node]\nname = "n1"\ncoordinator = "{self.address}"\ndata_listen = "unix:{self.folder}/d.sock"\nmemory = "16GiB"\n'
            f'work_dir = "{self.folder}/work"\n[pool]\nfast_dir = "{self.fast}"\nfast_budget = "16MiB"\n'
            f'slow_dir = "{self.folder}/slow"\nslow_budget = "16MiB"\n[probe]\ncalibrate = false\npassive = false\n'
            f"[sharing]\n{sharing}", encoding="utf-8")
        self.begin("tierpilot-coordinator", "coordinator")
        self.wait("the coordinator answers", lambda: self.ask("node", "list", fails=True) is not None, 15)
        self.begin("tierpilotd", "tierpilotd")
        self.wait("the GPU is shared", lambda: any(unit.get("shared") for unit in self.units()), 20)
        if self.options.mps == "always":
            self.wait("MPS's control program answers", lambda: self.counts().get("gpu_mps_control_starts"), 15)

    def begin(self, name, config):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen([self.programs[name], "--config", f"{self.folder}/{config}.toml"],
                                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, *words, fails=False):
        done = subprocess.run([self.programs["tierctl"], "--connect", self.address, "-j", *words], capture_output=True, text=True,
                              timeout=15, check=False)
        if done.returncode != 0 and not fails:
            self.check_processes()
            raise RuntimeError(f"tierctl {' '.join(words)}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def units(self):
        return [unit for unit in self.ask("unit", "list")["units"] if "/gpu/" in unit["id"]]

    def counts(self):
        found = {}

        def look(value):
            for key, inner in (value.items() if isinstance(value, dict) else enumerate(value)):
                if isinstance(inner, (dict, list)):
                    look(inner)
                elif str(key).startswith("gpu_"):
                    found[key] = inner
                elif key == "name" and str(inner).startswith("gpu_"):
                    found[inner] = value.get("value")

        look(self.ask("node", "show", "n1"))
        return found

    def check_processes(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}")

    def wait(self, what, is_so, seconds):
        until = min(time.monotonic() + seconds, self.deadline)
        while not (said := is_so()):
            self.check_processes()
            if time.monotonic() > until:
                raise TimeoutError(f"not within its time: {what}")
            time.sleep(0.1)
        return said

    def submit(self, name, kind):
        report = self.folder / f"{name}.report"
        words = ["task", "submit", "--share", SHARES[name], "--engine", "gpu", "--name", name]
        for variable in PASSED_ON:
            if os.environ.get(variable):
                words += ["--env", f"{variable}={os.environ[variable]}"]
        made = self.ask(*words, "--", sys.executable, str(self.options.job), kind, str(report), str(self.folder / f"{name}.stop"))
        self.tasks[name] = made["tasks"][0]["id"]
        return self.tasks[name]

    def show(self, name):
        shown = self.ask("task", "show", str(self.tasks[name]))
        return shown.get("task", shown)

    def said(self, name, attempt=0):
        """What the job has reported, of this attempt and later ones."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.folder / f"{name}.report").read_text(encoding="utf-8").split("\n")[:-1]
            return [line for line in map(json.loads, lines) if line["attempt"] >= attempt]
        return []

    def wait_computing(self, name, attempt=0):
        def computes():
            if any("count" in line for line in self.said(name, attempt)):
                return True
            if (state := self.show(name)["state"]) in ENDED:
                raise RuntimeError(f"{name} has {state} before it computed: {self.logs_of(name)}")
            return False

        self.wait(f"{name} computes", computes, START_S)

    def logs_of(self, name):
        done = subprocess.run([self.programs["tierctl"], "--connect", self.address, "task", "logs", str(self.tasks[name])],
                              capture_output=True, text=True, timeout=15, check=False)
        return (done.stdout + done.stderr)[-1500:]

    def stop(self, name):
        (self.folder / f"{name}.stop").touch()

    def wait_ended(self, name, seconds=START_S):
        self.wait(f"{name} ends", lambda: self.show(name)["state"] in ENDED, seconds)
        return self.show(name)

    def done(self, name, begin, end):
        """Of each kind of second that lay between: how many, and in how many seconds."""
        sums = {}
        for line in self.said(name):
            if "count" in line and line["begin"] >= begin and line["end"] <= end:
                done = sums.setdefault(line["kind"], [0, 0.0])
                done[0], done[1] = done[0] + line["count"], done[1] + line["end"] - line["begin"]
        return sums

    def rates(self, name, begin, end):
        return {kind: count / seconds for kind, (count, seconds) in self.done(name, begin, end).items()}

    def mps_logs(self, most=60):
        return {path.name: path.read_text(encoding="utf-8", errors="replace").splitlines()[-most:]
                for path in sorted(self.folder.glob("work/mps/*/log/*.log"))}

    def end(self):
        """By pid, whatever has happened."""
        for name in self.tasks:
            self.stop(name)
        pids = [line["pid"] for name in self.tasks for line in self.said(name) if "pid" in line]
        pids += [int(path.read_text(encoding="utf-8").strip() or 0) for path in self.folder.glob("work/mps/*/pipe/*.pid")]
        for name in reversed(self.processes):
            process = self.processes[name]
            process.terminate()
            try:
                process.wait(12 if name == "tierpilotd" else 3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(3)
        for pid in pids:
            with contextlib.suppress(OSError):
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if str(self.folder).encode() in line or b"mps-control" in line:
                    os.kill(pid, signal.SIGKILL)
                    print(f"left behind, and ended now: {pid} {line.decode(errors='replace')[:100]}")

    def print_logs(self):
        for path in sorted(self.folder.glob("*.log")):
            print(f"--- the end of {path.name}", *path.read_text(errors="replace").splitlines()[-40:], sep="\n")
        for name, lines in self.mps_logs(40).items():
            print(f"--- the end of MPS's {name}", *lines, sep="\n")


# The phases: each gives what it found, and prints it


def say_rates(rates):
    return " ".join(f"{kind} {rate:.1f}/s" for kind, rate in sorted(rates.items())) or "it computed nothing"


def shown_share(cluster, name):
    share = cluster.show(name).get("unit_share") or {}
    return {key: value for key, value in share.items() if "milli" in key or "bytes" in key}


def hardware(cluster, name):
    return next((line["device"] for line in cluster.said(name) if "device" in line), {})


def peak_bytes(ended):
    """Of the GPU's memory, as it was measured; None: it was not."""
    memory = (ended.get("exit") or {}).get("memory") or []
    return next((figure["value"] for figure in memory if figure["name"] == "gpu_peak_bytes"), None)


def tool(cluster, *words):
    done = subprocess.run([cluster.programs["tiertool"], *words], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


def alone(cluster, found):
    cluster.submit("alone", "compute")
    cluster.wait_computing("alone")
    begin = time.time()
    time.sleep(cluster.options.window + 0.5)
    row = {"name": "alone", "share": SHARES["alone"], "rates": cluster.rates("alone", begin, time.time()),
           "share_shown": shown_share(cluster, "alone"), "device": hardware(cluster, "alone")}
    cluster.stop("alone")
    found["alone"] = row
    print(f"alone, share 1000: {say_rates(row['rates'])}\n  {row['device']}\n  {row['share_shown']}", flush=True)
    row["peak_bytes"] = peak_bytes(cluster.wait_ended("alone"))
    print(f"  the most of the GPU's memory: {row['peak_bytes']} bytes", flush=True)


def held_percent(done, before):
    """Of what it did alone, of each kind, and of all: in how many of the seconds it would have done this alone."""
    held = {kind: 100 * count / before[kind] / seconds for kind, (count, seconds) in done.items() if before.get(kind)}
    if held:
        held["all"] = 100 * sum(done[kind][0] / before[kind] for kind in held) / sum(done[kind][1] for kind in held)
    return held


def beside(cluster, found):
    for name in ("small", "large"):
        cluster.submit(name, "compute")
    for name in ("small", "large"):
        cluster.wait_computing(name)
    begin = time.time()
    time.sleep(cluster.options.window + 0.5)
    end, before = time.time(), found.get("alone", {}).get("rates", {})
    found["beside"] = []
    for name in ("small", "large"):
        row = {"name": name, "share": SHARES[name], "rates": cluster.rates(name, begin, end), "device": hardware(cluster, name),
               "share_shown": shown_share(cluster, name)}
        row["held_percent"] = held_percent(cluster.done(name, begin, end), before)
        share = int(row["share"].split(":")[0]) / 10
        row["off_points"] = {kind: held - share for kind, held in row["held_percent"].items()}
        found["beside"].append(row)
        print(f"beside, share {row['share']}: {say_rates(row['rates'])}",
              *(f"; {kind}: {held:.1f} % of alone ({held - share:+.1f} points)" for kind, held in row["held_percent"].items()),
              f"\n  {row['device']}\n  {row['share_shown']}", flush=True)
    found["units"], found["counts"] = cluster.units(), cluster.counts()
    found["tiertool"] = {words: tool(cluster, *words.split()) for words in ("gpu show", "gpu top --interval 1 --count 2")}
    print("counts:", found["counts"], "\nunits:", found["units"])
    for words, text in found["tiertool"].items():
        print(f"tiertool {words}:\n{text}", flush=True)
    cluster.stop("small")
    found["beside"][0]["peak_bytes"] = peak_bytes(cluster.wait_ended("small", 8))
    print(f"  the most of the GPU's memory that 300:4GiB had: {found['beside'][0]['peak_bytes']} bytes", flush=True)


def ensure(cluster, name, kind):
    if name not in cluster.tasks:
        cluster.submit(name, kind)


def incident(cluster, found, name):
    """A job that does something bad beside one that computes: what comes of both."""
    ended = cluster.wait_ended(name, START_S + 5)
    at = time.time()
    time.sleep(2.5)
    neighbour = cluster.show("large")
    row = {"end": {key: ended.get(key) for key in SHOWN},
           "said": [line for line in cluster.said(name) if "count" not in line], "log": cluster.logs_of(name)[-400:],
           "neighbour": {key: neighbour.get(key) for key in SHOWN},
           "neighbour_rates": cluster.rates("large", at - 0.2, time.time()), "counts": cluster.counts()}
    found[name] = row
    print(f"{name}: {row['end']}\n  it said {row['said']}\n  neighbour {row['neighbour']}, after it {say_rates(row['neighbour_rates'])}",
          f"\n  {row['counts']}", flush=True)
    return row


def memory(cluster, found):
    ensure(cluster, "large", "compute")
    cluster.wait_computing("large")
    cluster.submit("greedy", "greedy")
    if "crash" in cluster.options.phases:  # it loads PyTorch meanwhile
        ensure(cluster, "crash", "crash")
    incident(cluster, found, "greedy")


def crash(cluster, found):
    for name, kind in (("large", "compute"), ("crash", "crash")):
        ensure(cluster, name, kind)
    for name in ("large", "crash"):
        cluster.wait_computing(name)
    cluster.stop("crash")  # which it takes as the time to crash
    row = incident(cluster, found, "crash")
    row["mps_logs"] = cluster.mps_logs()
    for name, lines in row["mps_logs"].items():
        print(f"  MPS's {name}:", *lines[-25:], sep="\n    ", flush=True)
    try:
        if cluster.show("large")["state"] not in ENDED:
            if not row["neighbour_rates"]:
                cluster.wait_computing("large", row["neighbour"]["attempt"])
            cluster.stop("large")
            cluster.wait_ended("large", 10)
    finally:
        last = cluster.show("large")
        row["neighbour_end"] = {key: last.get(key) for key in SHOWN}
        row["neighbour_log"], row["units"], row["counts"] = cluster.logs_of("large")[-600:], cluster.units(), cluster.counts()
        print(f"  its neighbour in the end: {row['neighbour_end']}\n  {row['counts']}\n  {row['neighbour_log']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--mps", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--mps-control", help="default: nvidia-cuda-mps-control of the PATH")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--window", type=float, default=6, help="seconds that rates are taken over")
    parser.add_argument("--seconds", type=float, default=80, help="in all, before what was started is ended")
    parser.add_argument("--job", type=lambda text: pathlib.Path(text).resolve(), default=pathlib.Path(jobs.__file__).resolve(),
                        help="in place of gpu_share_jobs.py")
    parser.add_argument("--logs", action="store_true", help="print their ends also where nothing failed")
    parser.add_argument("--json", dest="file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    found, failed = {"schema": 1, "mps": options.mps}, []
    made = [tempfile.TemporaryDirectory(prefix="tp-", dir=place, ignore_cleanup_errors=True) for place in ("/tmp", "/dev/shm")]
    with made[0] as folder, made[1] as fast:
        cluster = Cluster(options, pathlib.Path(folder), fast)
        try:
            cluster.start()
            for phase in options.phases.split(","):
                try:
                    {"alone": alone, "beside": beside, "memory": memory, "crash": crash}[phase](cluster, found)
                except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
                    failed.append(f"{phase}: {error}")
                    print(f"FAILED {failed[-1]}", flush=True)
                    if phase == "alone":  # so will be the others
                        break
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            failed.append(str(error))
        finally:
            cluster.end()
            found["failed"] = failed
            if failed or options.logs:
                cluster.print_logs()
            if options.file:
                pathlib.Path(options.file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return "; ".join(failed) or 0


if __name__ == "__main__":
    sys.exit(main())
