import os
import random
import time

from harness import disk, host

SEED = int(os.environ.get("SEED", "17"))
CUTS = 4 if os.environ.get("TIERPILOT_TEST_LONG") else 2  # one at any time, one between two writes
MOST_WRITES = 60
PATIENCE_S = 200


class Host(host.Host):
    boots = CUTS + 1

    def __init__(self, build, folder):
        super().__init__(build, folder)
        self._disk = disk.Disk(folder, 256)
        self.disk = self._disk.socket
        self._draw = random.Random(SEED)
        self._boot = 0
        self._promises = []  # lines of all boots before
        self._ended = set()  # tasks whose end was acknowledged before the last cut

    def conduct(self, live):
        self._boot += 1
        live.wait_for("booted", PATIENCE_S)
        last = self._boot == self.boots
        live.say("last" if last else self._boot)
        for line in self._promises:
            live.say(line)
        live.say("go")
        checked = live.wait_for("checked", PATIENCE_S)
        print(f"boot {self._boot}: {checked}")
        if not last:
            # Something is acknowledged first, of each kind.
            for kind in ("submitted", "ended", "wrote"):
                live.wait_for(kind, PATIENCE_S, live.heard.index(checked))
            self._wait_for_the_moment()
            live.cut_power()
            unflushed, lost = self._disk.cut_power(self._draw.random())
            print(f"{unflushed} sectors were not flushed, {lost} are lost")
        self._judge(live.heard)

    def _wait_for_the_moment(self):
        """Any; or right between two writes, where hardly any moment by the clock is."""
        if self._boot % 2 == 1:
            time.sleep(self._draw.uniform(0, 3))
            return
        self._disk.stop_after(self._draw.randint(1, MOST_WRITES))
        assert self._disk.stopped.wait(PATIENCE_S), "so many writes never came"

    def _judge(self, heard):
        wrong = [line for line in heard if line.startswith("WRONG")]
        again = [line for line in heard
                 if line.startswith("run ") and line.split()[1] in self._ended]
        assert not wrong and not again, "\n".join(wrong + again)
        self._promises += [line for line in heard
                           if line.startswith(("submitted ", "ended ", "wrote "))]
        self._ended |= {line.split()[1] for line in heard if line.startswith("ended ")}

    def close(self):
        super().close()
        self._disk.close()
