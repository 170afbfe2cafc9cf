"""A training in a process of its own, looked at from outside and ended where it takes too much."""

import json
import os
import pathlib
import subprocess
import sys
import threading

_SAMPLE_SECONDS = 0.002


class Child:
    """`limit`: bytes of private resident memory; more, for a moment, and it is killed."""

    def __init__(self, environment, limit=None, **settings):
        script = pathlib.Path(__file__).with_name("train.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C means who asks it
        )
        self._limit = limit
        self.settings = settings
        self.peak_bytes = 0  # of private resident memory: the most that was seen or that it tells
        self.last_peak_bytes = 0  # the same, of the last answer
        self.first_bytes = 0  # the same, before its first step
        self.failed = None  # why

    def ask(self, word):
        """The answer, or None once it has failed."""
        if not self.first_bytes and not self.failed:
            ready = self._answer(self._process.stdout.readline())
            self.first_bytes = ready["ready_bytes"] if ready else 0
        if self.failed:
            return None
        self.last_peak_bytes = 0
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
        return self._answer(line)

    def _answer(self, line):
        if not line:
            self.failed = self.failed or f"ended with status {self._process.wait()}"
            return None
        said = json.loads(line)
        told = said.get("peak_bytes", 0) or said.get("swap", {}).get("last_peak_bytes", 0)
        self._seen(told)
        return None if self.failed else said

    def _seen(self, used):
        self.peak_bytes = max(self.peak_bytes, used)
        self.last_peak_bytes = max(self.last_peak_bytes, used)
        if self._limit and used > self._limit and not self.failed:
            self.failed = "took more than the budget"
            self._process.kill()

    def _watch(self, ended):
        while not ended.wait(_SAMPLE_SECONDS):
            try:
                with open(f"/proc/{self._process.pid}/status") as status:
                    text = status.read()
            except OSError:
                return
            at = text.find("RssAnon:")
            if at >= 0:
                self._seen(int(text[at + 8 :].split()[0]) * 1024)

    def end(self):
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def environment(library, modules, tight=False):
    """`tight`: the C library gives back at once what is freed, so that plain training takes no more
    than it needs; slow, and for what fits only."""
    made = {**os.environ, "TIERPILOT_SWAP_LIBRARY": library, "PYTHONPATH": modules}
    if tight:
        made["MALLOC_MMAP_THRESHOLD_"] = str(1 << 20)
    return made
