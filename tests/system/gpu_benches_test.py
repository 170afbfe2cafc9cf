#!/usr/bin/env python3
"""The benches for a machine with a GPU go their way where there is none: by stand-ins for the driver and for MPS, and on the processor.

    gpu_benches_test.py SOURCES BUILD MODULES LIBRARY FAKE_NVML
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCES, BUILD, MODULES, LIBRARY, FAKE_NVML = (pathlib.Path(name).resolve() for name in sys.argv[1:6])
del sys.argv[1:6]


class Benches(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        self.file = self.folder / "found.json"

    def run_bench(self, name, *arguments, **environment):
        ended = subprocess.run([sys.executable, SOURCES / "tests/bench" / name, *arguments, "--json", self.file],
                               env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return json.loads(self.file.read_text(encoding="utf-8"))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_nets_on_the_processor(self):
        policies = ["save-on-cpu", "checkpoint", "swap+recompute"]
        found = self.run_bench("swap/gpu_nets.py", MODULES, LIBRARY, "--device", "cpu", "--nets", "alexnet", "--batch", "2",
                               "--rounds", "1", "--leg", "2", "--policies", ",".join(policies), "--tiers", "memory=64MiB")
        self.assertEqual([row["policy"] for row in found["rows"]], policies)
        for row in found["rows"]:
            self.assertGreater(row["race"]["speed"], 0)
        self.assertGreater(found["rows"][2]["race"]["out_bytes"], 0)  # unknown steps let everything leave

    def test_shares_by_stand_ins(self):
        (self.folder / "gpus").write_text("GPU-1\n", encoding="ascii")
        found = self.run_bench(
            "sharing/gpu_shares.py", BUILD, "--mps", "always", "--mps-control", SOURCES / "tests/fake_mps/nvidia-cuda-mps-control",
            "--phases", "memory,crash", "--window", "1", "--job", SOURCES / "tests/bench/sharing/stand_in_jobs.py",
            FAKE_NVML=str(self.folder), LD_LIBRARY_PATH=str(FAKE_NVML))
        self.assertEqual(found["failed"], [])
        self.assertEqual(found["greedy"]["end"]["exit"]["code"], 7)
        self.assertEqual(found["crash"]["neighbour_end"]["state"], "succeeded")
        self.assertEqual(found["crash"]["neighbour_end"]["attempt"], 2)
        self.assertEqual(found["crash"]["counts"]["gpu_mps_server_faults"], 1)


if __name__ == "__main__":
    unittest.main()
