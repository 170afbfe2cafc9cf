#!/usr/bin/env python3
"""Every job of `quickstart sharing` trains.

Arguments: its script, the Python module's folder."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT, MODULES = sys.argv[1:3]
del sys.argv[1:3]

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: no PyTorch for {sys.executable}: {error}")
    sys.exit(77)

sys.path[:0] = [MODULES, os.path.dirname(SCRIPT)]
import train  # noqa: E402


class Jobs(unittest.TestCase):
    def test_each_trains(self):
        for name in train.JOBS:
            with self.subTest(job=name), contextlib.redirect_stdout(io.StringIO()) as said:
                train.train(name, 2)
                self.assertIn("2 iterations", said.getvalue())

    def test_as_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            made = {**os.environ, "PYTHONPATH": MODULES}
            ended = subprocess.run([sys.executable, SCRIPT, "mlp", "2"], cwd=folder, env=made, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("2 iterations", ended.stdout)


if __name__ == "__main__":
    unittest.main()
