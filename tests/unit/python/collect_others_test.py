#!/usr/bin/env python3
"""What is beside a training on its core, and what that takes from it: without any training."""
import os
import sys
import tempfile
import time
import unittest
import unittest.mock

try:
    import torch  # noqa: F401
except ImportError:
    print("skipped: PyTorch is not installed (python3-torch)")
    sys.exit(77)

sys.path.insert(0, sys.argv.pop(1))
sys.dont_write_bytecode = True
from tierpilot.collect import pairs  # noqa: E402
from tierpilot.collect.cores import core_beside  # noqa: E402


class Others(unittest.TestCase):
    def test_threads_of_one_core_are_no_two_cores(self):
        with tempfile.TemporaryDirectory() as cpus:
            for path, text in (("cache/index0", "0-1"), ("cache/index3", "0-3"), ("topology", "0-1")):
                os.makedirs(f"{cpus}/cpu0/{path}")
                name = "thread_siblings_list" if path == "topology" else "shared_cpu_list"
                with open(f"{cpus}/cpu0/{path}/{name}", "w") as file:
                    file.write(text + "\n")
            with unittest.mock.patch("os.sched_getaffinity", return_value={0, 1, 2, 3}):
                self.assertEqual(core_beside(0, cpus), 2)

    def phase(self, ahead_s, seconds=0.2):
        """How long it ran, by what is said of it: it could have run all the time and did not."""
        began = time.monotonic()
        training = unittest.mock.Mock()
        training.counts.side_effect = lambda: (int(100 * (time.monotonic() - began)), 0.0, 0)
        training.waited_s.side_effect = lambda: time.monotonic() - began
        training.loaded_ahead_s.return_value = ahead_s
        return pairs._phase([training], seconds)[2]

    def test_what_it_waits_for_its_core_while_it_loads_ahead_is_no_time_of_others(self):
        self.assertLess(self.phase(0), 0.1)
        self.assertGreaterEqual(self.phase(100), 0.2)

    def test_one_that_has_died_is_no_slow_one(self):
        training = unittest.mock.Mock()
        training.counts.return_value = (0, 0.0, 0)
        training.check_lives.side_effect = RuntimeError("its process ended")
        with self.assertRaisesRegex(RuntimeError, "its process ended"):
            pairs._phase([training], 0.05)


if __name__ == "__main__":
    unittest.main()
