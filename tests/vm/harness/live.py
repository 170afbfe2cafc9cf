"""A guest while it runs, as seen from outside: its power switch, QEMU's monitor and its third
serial port (/dev/ttyS2), on which it and its case's Host talk in lines."""

import json
import socket
import threading
import time

from harness import cache


class Live:
    def __init__(self, process, folder):
        self.process = process
        self.heard = []  # lines, as they came
        self._line = _connect(folder / "line", process)
        self._monitor = _connect(folder / "monitor", process).makefile("rw")
        self.monitor("qmp_capabilities")
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @staticmethod
    def qemu_arguments(folder):
        return ["-serial", f"unix:{folder / 'line'},server=on,wait=off",
                "-qmp", f"unix:{folder / 'monitor'},server=on,wait=off"]

    def monitor(self, command, **arguments):
        """A command of the QEMU machine protocol; what it returns."""
        self._monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._monitor.flush()
        while True:
            answer = json.loads(self._monitor.readline())
            # It greets first, and twice where somebody connects while it starts.
            if "event" not in answer and "QMP" not in answer:
                assert "return" in answer, f"{command}: {answer}"
                return answer["return"]

    def say(self, line):
        self._line.sendall(f"{line}\n".encode())

    def wait_for(self, start, patience_s, since=0):
        """The first line with that start, of those that came as number `since` or later."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            alive = self.process.poll() is None
            found = [line for line in self.heard[since:] if line.startswith(start)]
            if found:
                return found[0]
            assert alive, f"the guest has ended and not said '{start}', but {self.heard[-3:]}"
            time.sleep(0.05)
        raise AssertionError(f"'{start}' was not heard in {patience_s} s, but {self.heard[-3:]}")

    def cut_power(self):
        self.process.kill()
        self.process.wait()
        self._listener.join()

    def _listen(self):
        try:
            with self._line.makefile("r", errors="replace", newline="\n") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        self.heard.append(line.strip())
        except OSError:
            pass  # the power was cut


def _connect(path, process):
    for _ in range(600):
        try:
            end = socket.socket(socket.AF_UNIX)
            end.connect(str(path))
            return end
        except OSError:
            end.close()
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise cache.Unavailable(f"QEMU does not listen at {path}")
