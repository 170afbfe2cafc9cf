"""A training in a process of its own, looked at from outside."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

_SAMPLE_SECONDS = 0.005


class Child:
    def __init__(self, environment, **settings):
        script = pathlib.Path(__file__).with_name("train.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.peak_bytes = 0  # private resident memory, the most that was seen
        self.failed = None

    def ask(self, word):
        """The answer, or None once it has failed."""
        if self.failed:
            return None
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watch.start()
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            ended.set()
            watch.join()
        said = json.loads(line) if line else {"failed": f"ended with {self._process.wait()}"}
        self.failed = said.get("failed")
        return None if self.failed else said

    def _watch(self, ended):
        path = f"/proc/{self._process.pid}/status"
        while not ended.wait(_SAMPLE_SECONDS):
            try:
                with open(path) as status:
                    text = status.read()
            except OSError:
                return
            at = text.find("RssAnon:")
            if at >= 0:
                self.peak_bytes = max(self.peak_bytes, int(text[at + 8 :].split()[0]) * 1024)

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def environment(library, modules, returns_memory):
    """`returns_memory`: freed memory leaves the process at once, as tierpilot-swap run does it."""
    made = {**os.environ, "TIERPILOT_SWAP_LIBRARY": library, "PYTHONPATH": modules}
    if returns_memory:
        made["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576"
    return made


def now():
    return time.monotonic()
