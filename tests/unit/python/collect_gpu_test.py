#!/usr/bin/env python3
"""Trainings are measured on a GPU, a predictor learns from such a table, and a card is given to it, by
tierpilot-lab. The driver's library and PyTorch's CUDA are such as do what they are told."""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

LAB, MODULES, TABLE, FAKE_NVML, STAND_IN = (sys.argv.pop(1) for _ in range(5))
sys.path.insert(0, MODULES)
sys.dont_write_bytecode = True
import tierpilot  # noqa: E402
from tierpilot.collect.architectures import ARCHITECTURES  # noqa: E402
from tierpilot.collect.measure import build, draw  # noqa: E402
from tierpilot.collect.table import COLUMNS, GPU_COLUMNS  # noqa: E402

KIND = "Fake_V100 7 0 5120 1530 877 4096 34359738368"
FEATURES = {
    "gpu_name": "Fake_V100",
    "gpu_compute_capability": 7.0,
    "gpu_memory_bytes": 34359738368,
    "gpu_cores": 5120,
    "gpu_sm_clock_mhz": 1530,
    "gpu_memory_clock_mhz": 877,
    "gpu_bus_width_bits": 4096,
}
SMALL = "bag_of_words,factorisation"  # architectures of which an iteration takes the processor a millisecond or two
STEP_S = 0.005  # in which it computes nothing
BYTES = 3 << 30  # that each client has, as the stand-in says


class CollectOnGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tell("gpus", "GPU-a\nGPU-b\n")
        self.tell("kinds", f"GPU-a {KIND}\n")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tell(self, name, text):
        with open(self.path(name), "a") as file:
            file.write(text)

    def lab(self, *words, nvml=FAKE_NVML, stand_in=STAND_IN, visible=None, loses=None, traces=False):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "FAKE_NVML": self.folder.name}
        environment.update(LD_LIBRARY_PATH=nvml, PYTHONPATH=stand_in, STAND_IN_STEP_S=str(STEP_S))
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        if loses is not None:
            environment["STAND_IN_LOSES"] = loses
        if traces:
            environment["STAND_IN_TRACES"] = "1"
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        return subprocess.run([LAB, *words], capture_output=True, text=True, env=environment)

    def collected(self, *words, **around):
        words = words if "--device" in words else (*words, "--device", "cuda")
        return self.lab(
            *("predictor", "collect", "--overwrite", "--out", self.path("t.csv"), "--seconds", "0.05"),
            *("--grow-batches", "3"),
            *("--python", sys.executable, *words),
            **around,
        )

    def rows(self):
        with open(self.path("t.csv")) as file:
            return list(csv.DictReader(file))

    def refused(self, *words, **around):
        done = self.collected("--configurations", "1", "--architectures", SMALL, *words, **around)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_measures_trains_and_predicts(self):
        done = self.collected("--configurations", "4", "--architectures", SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows()
        self.assertEqual([row["architecture"] for row in rows], SMALL.split(",") * 2)
        self.assertEqual(list(rows[0]), COLUMNS + GPU_COLUMNS)
        for row in rows:
            for name, value in FEATURES.items():
                self.assertEqual(row[name], str(value), name)
            self.assertTrue(0 < float(row["utilisation_milli"]) <= 1000)
            self.assertEqual(int(row["memory_bytes"]), BYTES)
            self.assertGreater(float(row["step_s"]), 0)
            self.assertGreater(float(row["busy_s"]), 0)
            self.assertGreaterEqual(int(row["measured_iterations"]), 5)
            card = draw(row["architecture"], int(row["seed"]))[1]
            self.assertEqual(card["launches"], int(row["launches"]), "the same trainings as on a core")
            self.assertIn(int(row["batch"]) / card["batch"], (1, 2, 3), "but for larger batches")
            self.assertEqual(row["driver_milli"], row["utilisation_milli"], "nothing was traced")
        with open(self.path("t.json")) as file:
            machine = json.load(file)["machine"]
        self.assertEqual({name: machine[name] for name in FEATURES}, FEATURES)
        self.assertEqual((machine["engine"], machine["cuda"]), ("gpu", "11.8"))
        self.train_and_predict()

    def train_and_predict(self):
        small, predictor = self.path("cores.csv"), self.path("p.json")
        with open(TABLE) as table, open(small, "w") as file:
            file.writelines(table.readlines()[:31])
        trained = self.lab("-j", "predictor", "train", "--data", small, self.path("t.csv"), "--out", predictor)
        self.assertEqual(trained.returncode, 4, trained.stderr)  # of few architectures
        said = json.loads(trained.stdout)
        self.assertEqual((said["configurations"], said["gpu_configurations"]), (30, 4))
        self.assertEqual(said["gpus"], ["Fake_V100"])
        # Where no table tells of cores, what another predictor knows of them is kept.
        again = self.path("again.json")
        only = self.lab("predictor", "train", "--data", self.path("t.csv"), "--cores", predictor, "--out", again)
        self.assertEqual(only.returncode, 4, only.stderr)
        with open(predictor) as first, open(again) as second:
            self.assertEqual(json.load(first), json.load(second))
        task, _ = build("bag_of_words", 100000, 0)
        card = tierpilot.describe(task.model, *task.inputs, iterations=1000)
        with open(self.path("card.json"), "w") as file:
            json.dump(card, file)
        on_core = self.predicted(predictor)
        on_gpu = self.predicted(predictor, "--gpu", "Fake_V100")
        self.assertFalse(on_gpu["unlike"], on_gpu["why"])
        self.assertNotEqual(on_core["run_s"], on_gpu["run_s"])
        self.assertAlmostEqual(on_gpu["memory_bytes"] / BYTES, 1, delta=0.3)
        other = self.predicted(predictor, "--gpu", "cores=3584,sm_clock_mhz=1328")
        self.assertIn("Fake_V100", other["why"])
        unknown = self.lab("predictor", "predict", self.path("card.json"), "--predictor", predictor, "--gpu", "V1")
        self.assertNotEqual(unknown.returncode, 0)
        self.assertIn("Fake_V100", unknown.stderr)
        tested = self.lab("-j", "predictor", "evaluate", "--data", self.path("t.csv"))
        self.assertEqual(tested.returncode, 0, tested.stderr)
        targets = [study["target"] for study in json.loads(tested.stdout)["studies"]]
        self.assertEqual(len(targets), 3)
        self.assertTrue(all("GPU" in target for target in targets), targets)

    def predicted(self, predictor, *words):
        done = self.lab("-j", "predictor", "predict", self.path("card.json"), "--predictor", predictor, *words)
        self.assertIn(done.returncode, (0, 4), done.stderr)
        return json.loads(done.stdout)

    def test_measures_the_gpu_that_it_is_told(self):
        done = self.collected("--configurations", "1", "--architectures", SMALL, "--device", "cuda:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows()[0]["gpu_name"], "Fake GPU")
        self.assertEqual(self.rows()[0]["gpu_cores"], "0", "its driver does not tell")
        with open(self.path("clients")) as file:
            self.assertIn("GPU-b", file.read())
        # Of those that it may use.
        done = self.collected("--configurations", "1", "--architectures", SMALL, visible="GPU-a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows()[0]["gpu_name"], "Fake_V100")
        self.assertIn("1 may be used", self.refused("--device", "cuda:1", visible="GPU-a"))

    def test_kernels_that_are_traced_tell_how_long_the_gpu_computes(self):
        done = self.collected("--configurations", "2", "--architectures", SMALL, traces=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in self.rows():
            self.assertAlmostEqual(float(row["busy_s"]), 150e-6, delta=1e-9, msg="two kernels, beside each other for a while")
            self.assertGreater(float(row["utilisation_milli"]), 0)
            self.assertNotEqual(row["utilisation_milli"], row["driver_milli"])

    def test_without_the_drivers_samples_it_takes_how_busy_the_gpu_is(self):
        self.tell("no_samples", "3\n")
        done = self.collected("--configurations", "1", "--architectures", SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        # What others took of the core while it was measured counts as none of its time.
        self.assertGreaterEqual(float(self.rows()[0]["utilisation_milli"]), 30)
        self.assertLess(float(self.rows()[0]["utilisation_milli"]), 300)

    def test_a_gpu_that_is_lost_meanwhile_is_told(self):
        done = self.collected("--configurations", "1", "--architectures", SMALL, loses="GPU-a")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("GPU is lost", done.stderr)
        self.assertFalse(os.path.exists(self.path("t.csv")), "a table without a row")

    def test_says_what_is_missing(self):
        self.assertIn("no driver of NVIDIA", self.refused(nvml=""))
        self.assertIn("without CUDA", self.refused(stand_in=""))
        self.assertIn("there is no GPU 7", self.refused("--device", "cuda:7"))
        self.assertIn("'tpu'", self.refused("--device", "tpu"))
        self.assertIn("leave out --cpu", self.refused("--pairs", "--cpu", "0"))
        self.tell("clients", f"GPU-a {os.getpid()} 1000\n")
        self.assertIn(str(os.getpid()), self.refused())

    def test_all_architectures_can_be_moved(self):
        for name in ARCHITECTURES:
            task, _ = build(name, 1, draw(name, 1)[0])
            task.move("meta")  # where nothing is computed, and nothing that is elsewhere can be used
            tensors = [*task.model.parameters(), *task.inputs, *([] if task.wanted is None else [task.wanted])]
            self.assertEqual({str(tensor.device) for tensor in tensors}, {"meta"}, name)


if __name__ == "__main__":
    unittest.main()
