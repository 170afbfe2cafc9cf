#!/usr/bin/env python3
"""While a training is measured on a GPU others get ready, and disturb it nowhere. The driver's library
and PyTorch's CUDA are such as do what they are told."""
import collections
import csv
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("torch"):  # to import it takes a second
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

sys.dont_write_bytecode = True
from process_groups import end_group, lives, wait_for  # noqa: E402

LAB, FAKE_NVML, STAND_IN = (sys.argv.pop(1) for _ in range(3))
BYTES = 3 << 30  # that each client has, and its number more
SMALL = ["factorisation", "bag_of_words"]  # of which an iteration takes the processor a millisecond or two
STEP_S = 0.005  # in which it computes nothing
SLOW_S = 0.1
LOADED = 3  # ends: the model has come, and two iterations
WARM_UP = 10
LONG = "TIERPILOT_TEST_LONG" in os.environ

Process = collections.namedtuple("Process", "number ends")


def overlap(one, other):
    return one[0] < other[1] and other[0] < one[1]


class Turns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("gpus"), "w") as file:
            file.write("GPU-a\n")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def begin(self, configurations, cpus, *limit, seconds="0.05", **more):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "FAKE_NVML": self.folder.name, **more}
        environment.update(LD_LIBRARY_PATH=FAKE_NVML, PYTHONPATH=STAND_IN, STAND_IN_SAMPLE_S="0.2")
        environment.update(STAND_IN_CPUS=str(cpus), STAND_IN_SLOW_S=str(SLOW_S), STAND_IN_STEP_S=str(STEP_S))
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        words = ["predictor", "collect", "--overwrite", "--out", self.path("t.csv"), "--seconds", seconds, "--device", "cuda",
                 "--grow-batches", "1"]
        words += ["--python", sys.executable, "--architectures", ",".join(SMALL), "--configurations", str(configurations), *limit]
        return subprocess.Popen(
            [LAB, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def collected(self, *given, **more):
        """What it said."""
        running = self.begin(*given, **more)
        _, said = running.communicate()
        self.assertEqual(running.returncode, 0, said)
        self.assertFalse(lives(running.pid))
        return said

    def rows(self):
        with open(self.path("t.csv")) as file:
            return list(csv.DictReader(file))

    def processes(self):
        """Those that came to the end of an iteration, with the times of each."""
        ends = collections.defaultdict(list)
        if os.path.exists(self.path("ends")):
            with open(self.path("ends")) as file:
                for line in file.read().splitlines():
                    number, began_s, ended_s = line.split()
                    ends[int(number)].append((float(began_s), float(ended_s)))
        return [Process(*each) for each in ends.items()]

    def most_at_once(self):
        """Processes that had come to the GPU and were not in their turn yet."""
        gets_ready = [(one.ends[0][0], one.ends[LOADED][0]) for one in self.processes()]
        return max(sum(begun <= at < ended for begun, ended in gets_ready) for at, _ in gets_ready)

    def expect_undisturbed(self, impatient):
        windows, disturbed = {}, set()
        for row in self.rows():
            number, iterations = int(row["memory_bytes"]) - BYTES, int(row["measured_iterations"])
            ends = next(one.ends for one in self.processes() if one.number == number)
            self.assertGreaterEqual(len(ends), LOADED + WARM_UP + iterations)
            windows[number] = (ends[-iterations - 1][1], ends[-1][1])
        turns = {one.number: (one.ends[LOADED][0], one.ends[-1][1]) for one in self.processes()}
        for number, window in windows.items():
            for other in self.processes():
                if other.number != number:
                    self.assertFalse(overlap(turns[number], turns[other.number]), "two had the GPU at once")
                    if any(overlap(end, window) for end in other.ends[1:LOADED]):
                        disturbed.add(number)
        self.assertLessEqual(len(disturbed), impatient, "others loaded kernels in more windows than is said")

    def test_others_get_ready_meanwhile_and_disturb_no_window(self):
        said = self.collected(8, 8, seconds="0.2")
        rows = self.rows()
        expected = [(str(100000 + i), SMALL[i % 2]) for i in range(8)]
        self.assertEqual(sorted((row["seed"], row["architecture"]) for row in rows), expected)
        numbers = {one.number for one in self.processes()}
        self.assertEqual({int(row["memory_bytes"]) - BYTES for row in rows}, numbers, "each has its own memory")
        self.assertEqual(len(numbers), 8)
        self.assertGreaterEqual(self.most_at_once(), 3)
        line = r"a configuration took \d.*preparing \d.*waiting for its turn \d.*measured \d.*, (\d+) windows beside"
        self.assertRegex(said, re.compile("^" + line))
        self.expect_undisturbed(int(re.match(line, said)[1]))
        self.assertEqual(said.count("\n"), 1, said)

    def expect_one_after_another(self):
        lives = sorted((one.ends[0][0], one.ends[-1][1]) for one in self.processes())
        self.assertEqual(len(lives), 3)
        for before, after in zip(lives, lives[1:]):
            self.assertFalse(overlap(before, after))

    def test_few_cores_are_those_of_who_is_measured(self):
        self.collected(3, 2)
        self.expect_one_after_another()

    def test_where_the_driver_does_not_know_whose_memory_it_is_one_computes_at_a_time(self):
        self.collected(3, 8, STAND_IN_HIDDEN="1")
        self.expect_one_after_another()

    def test_who_dies_is_left_out(self):
        self.expect_left_out("its process ended with status 9", 2, STAND_IN_DIES_AT=f"0,{LOADED + 2}")
        if LONG:
            self.expect_left_out("its process ended with status 9", 1, STAND_IN_DIES_AT=str(LOADED - 1))

    def test_who_hangs_is_left_out(self):
        self.expect_left_out("it did not answer within 10.05 s", 1, "--time-limit", "10", STAND_IN_HANGS_AT=str(LOADED + 2))

    def expect_left_out(self, why, count, *limit, **more):
        """So many, and three are measured."""
        said = self.collected(count + 3, 8, *limit, **more)
        left_out = re.findall(r"^left out: \w+, seed \d+: (.*)$", said, re.MULTILINE)
        self.assertEqual([reason[: len(why)] for reason in left_out], [why] * count, said)
        self.assertEqual(len(self.rows()), 3)

    def test_nothing_is_left_behind(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            with self.subTest(signal=number):
                running = self.begin(50, 8)
                self.addCleanup(end_group, running.pid)
                wait_for(lambda: len(self.processes()) >= 4)
                os.kill(running.pid, number)
                running.wait()
                wait_for(lambda: not lives(running.pid))
                running.communicate()
                os.remove(self.path("ends"))


if __name__ == "__main__":
    unittest.main()
