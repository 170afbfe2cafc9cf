#!/usr/bin/env python3
"""Pairs of trainings are measured on a GPU, by seconds of the clock, with nobody beside them. The driver's library
and PyTorch's CUDA are such as do what they are told."""
import collections
import csv
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("torch"):  # to import it takes a second
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

sys.dont_write_bytecode = True
from process_groups import PATIENCE_S, end_group, lives, wait_for  # noqa: E402

LAB, FAKE_NVML, STAND_IN = (sys.argv.pop(1) for _ in range(3))
BYTES = 3 << 30  # that each client has, and its number more where it is slow
STEP_S = 0.04  # longer than the processor computes in an iteration
SHORT_STEP_S = 0.01  # in which it computes nothing
WARM = 10  # iterations of a training that gets ready
SMALL = "factorisation,bag_of_words"  # architectures of which an iteration takes the processor a millisecond or two
SECONDS = 0.1  # with half of that a busy machine has no iteration in the six times that it may take
LONG = "TIERPILOT_TEST_LONG" in os.environ


class PairsOnGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in (("gpus", "GPU-a\n"), ("kinds", "GPU-a Fake_V100 7 0 5120 1530 877 4096 34359738368\n")):
            with open(self.path(name), "w") as file:
                file.write(text)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def lab(self, *words, **more):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "FAKE_NVML": self.folder.name}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        environment.pop("CUDA_MPS_PIPE_DIRECTORY", None)
        environment.update(LD_LIBRARY_PATH=FAKE_NVML, PYTHONPATH=STAND_IN, STAND_IN_SAMPLE_S="0.2")
        environment.update({"STAND_IN_STEP_S": str(SHORT_STEP_S), **more})
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([LAB, *words], env=environment, start_new_session=True, **pipes)

    def begin(self, pairs, *more_words, **more):
        words = ("predictor", "collect", "--overwrite", "--out", self.path("t.csv"), "--device", "cuda", "--pairs")
        words += ("--python", sys.executable, "--architectures", SMALL, "--grow-batches", "1")
        if "--seconds" not in more_words:
            more_words += ("--seconds", str(SECONDS))
        return self.lab(*words, "--configurations", str(pairs), *more_words, **more)

    def collected(self, *given, **more):
        """What it said of those that it left out. No process is left."""
        running = self.begin(*given, **more)
        _, said = running.communicate()
        self.assertEqual(running.returncode, 0, said)
        self.assertFalse(lives(running.pid))
        return said

    def rows(self, name="t.csv"):
        if not os.path.exists(self.path(name)):
            return []
        with open(self.path(name)) as file:
            return list(csv.DictReader(file))

    def machine(self):
        with open(self.path("t.json")) as file:
            told = json.load(file)
        self.assertEqual(told["kind"], "measured pairs of trainings")
        return told["machine"]

    def ends(self):
        """(began, ended) of each iteration, by process."""
        ends = collections.defaultdict(list)
        if os.path.exists(self.path("ends")):
            with open(self.path("ends")) as file:
                for line in file.read().splitlines():
                    number, *span = line.split()
                    ends[int(number)].append(tuple(map(float, span)))
        return ends

    def test_rates_are_of_seconds_of_the_clock(self):
        self.assertEqual(self.collected(2, "--seconds", "0.2", STAND_IN_STEP_S=str(STEP_S)), "")
        rows = self.rows()
        self.assertEqual([row["seed"] for row in rows], ["100000", "100001"])
        for row in rows:
            self.assertEqual(row["card"], "Fake_V100")
            for i, job in enumerate("ab"):
                self.assertIn(row[f"model_{job}"], SMALL.split(","))
                self.assertEqual(int(row[f"architecture_seed_{job}"]), 2 * int(row["seed"]) + i)
                self.assertEqual(int(row[f"memory_bytes_{job}"]), BYTES)
                self.assertTrue(0 < float(row[f"milli_{job}"]) <= 1000)
                self.assertGreater(float(row[f"traffic_bytes_s_{job}"]), 0)
                # By the processor's seconds it would be more.
                self.assertTrue(0 < STEP_S * float(row[f"alone_{job}"]) < 1.02, row)
            # The GPU belongs to one of them at a time: they ran beside each other.
            self.assertLess(STEP_S * sum(float(row[f"together_{job}"]) for job in "ab"), 1.1)
        machine = self.machine()
        self.assertEqual((machine["engine"], machine["gpu_name"], machine["mps"]), ("gpu", "Fake_V100", False))
        evaluated = self.lab("-j", "predictor", "evaluate", "--data", self.path("t.csv"))
        told, said = evaluated.communicate()
        self.assertEqual(evaluated.returncode, 0, said)
        study = json.loads(told)["studies"][0]
        self.assertEqual((study["target"], study["rows"]), ("retained, law of measured use", 4))

    def expect_use_by_kernels(self, row):
        for job in "ab":
            # Kernels of the stand-in cover 150 us of an iteration.
            milli = 1000 * 150e-6 * float(row[f"alone_{job}"])
            self.assertAlmostEqual(float(row[f"traced_milli_{job}"]), milli, delta=0.06 + 1e-4 * milli)
            self.assertTrue(0 < float(row[f"milli_{job}"]) <= 1000)

    def test_nobody_is_beside_a_pair_that_is_measured(self):
        self.collected(5, STAND_IN_SLOW_S="0.1", STAND_IN_CPUS="16")
        ends = self.ends()
        self.assertEqual(len(ends), 10)
        pairs = [{int(row[f"memory_bytes_{job}"]) - BYTES for job in "ab"} for row in self.rows()]
        self.assertEqual(set.union(*pairs), set(ends), "each has its own memory")
        alive = [(spans[0][0], spans[-1][1]) for spans in ends.values()]
        most = max(sum(begun <= at < ended for begun, ended in alive) for at, _ in alive)
        self.assertEqual(most, 8, "four pairs get ready at once")
        for pair in pairs:
            measured = [ends[number][WARM:] for number in pair]
            began_s, ended_s = min(spans[0][0] for spans in measured), max(spans[-1][1] for spans in measured)
            others = [span for number, spans in ends.items() if number not in pair for span in spans]
            self.assertFalse([span for span in others if span[0] < ended_s and began_s < span[1]])

    def test_a_pair_of_which_one_dies_is_left_out(self):
        self.expect_left_out("its process ended with status 9", 2, STAND_IN_DIES_AT=f"0,{WARM + 20}")
        if LONG:
            self.expect_left_out("its process ended with status 9", 1, STAND_IN_DIES_AT=str(WARM - 1))

    def test_a_pair_of_which_one_hangs_is_left_out(self):
        self.expect_left_out("it did not answer within 10.1 s", 2, "--time-limit", "10", STAND_IN_HANGS_AT=f"1,{WARM + 20}")

    def expect_left_out(self, why, pairs, *words, **more):
        """So many, while they get ready or are measured, and one more is not."""
        said = self.collected(pairs + 1, *words, **more)
        for line in said.splitlines():
            self.assertRegex(line, rf"left out: \w+ beside \w+: \w+, seed \d+: {why}")
        self.assertEqual((said.count("\n"), len(self.rows())), (pairs, 1), said)

    def test_what_was_measured_until_ctrl_c_is_kept(self):
        running = self.begin(50)
        self.addCleanup(end_group, running.pid)
        wait_for(lambda: self.rows("t.csv.part"))
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=PATIENCE_S)
        self.assertEqual(running.returncode, 130, said)
        # One that was begun just then is killed by the kernel, as its parent has gone.
        wait_for(lambda: not lives(running.pid))
        self.assertIn(f"stopped: {len(self.rows())} of 50 pairs", said)
        self.assertGreaterEqual(len(self.rows()), 1)

    def test_who_is_killed_leaves_no_training(self):
        running = self.begin(50, STAND_IN_SLOW_S="0.1")
        self.addCleanup(end_group, running.pid)
        wait_for(lambda: len(self.ends()) >= 2)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        wait_for(lambda: not lives(running.pid))
        running.communicate()

    def test_under_mps_that_is_told_its_server_is_nobody_else_and_traced_kernels_tell_the_use(self):
        server = self.path("nvidia-cuda-mps-server")
        shutil.copy(shutil.which("sleep"), server)
        serves = subprocess.Popen([server, "1000"])
        self.addCleanup(serves.wait)
        self.addCleanup(serves.kill)
        with open(self.path("clients"), "w") as file:
            file.write(f"GPU-a {serves.pid} 1000\n")
        wait_for(lambda: name_of(serves.pid).startswith("nvidia-cuda"))
        refused = self.begin(1)
        self.assertIn(str(serves.pid), refused.communicate()[1])
        self.assertNotEqual(refused.returncode, 0)
        self.collected(1, CUDA_MPS_PIPE_DIRECTORY=self.path("mps"), STAND_IN_TRACES="1")
        self.assertEqual((self.machine()["mps"], len(self.rows())), (True, 1))
        self.expect_use_by_kernels(self.rows()[0])
        with open(self.path("clients"), "a") as file:
            file.write(f"GPU-a {os.getpid()} 1000\n")
        beside = self.begin(1, CUDA_MPS_PIPE_DIRECTORY=self.path("mps"))
        self.assertIn(str(os.getpid()), beside.communicate()[1])
        self.assertNotEqual(beside.returncode, 0)


def name_of(pid):
    with open(f"/proc/{pid}/comm") as name:
        return name.read()


if __name__ == "__main__":
    unittest.main()
