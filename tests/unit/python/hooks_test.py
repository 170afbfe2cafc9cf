#!/usr/bin/python3
"""Unchanged PyTorch scripts report their loss; a node is played by this test."""
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

PYTHON = sys.executable
MODULES = sys.argv.pop(1)

SCRIPT = """
import sys, torch
assert __name__ == "__main__" and sys.argv[1:] == ["a", "b c"], sys.argv
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
other = torch.optim.Adam(torch.nn.Linear(2, 2).parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
x = torch.ones(8, 4)
import time
for step in range(30):
    optimizer.zero_grad()
    loss = (model(x) - 3).square().mean()
    loss.backward()
    optimizer.step()
    other.step()
    schedule.step()
    if step in (0, 29):
        print(step + 1, loss.item())
    time.sleep(0.02)
time.sleep(0.2)
optimizer.step()
"""


# One training after the other, and another one in a fork.
ONE_AFTER_THE_OTHER = """
import gc, os, time, torch, weakref
gc.disable()
class OfItsOwn(torch.optim.SGD):
    def __init__(self, parameters):
        self.step = lambda: None
        super().__init__(parameters, lr=0.05)
def train(steps):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(steps):
        loss = (model(torch.ones(8, 4)) - 3).square().mean()
        loss.backward()
        optimizer.step()
        time.sleep(0.005)
    return weakref.ref(model)
assert train(40)() is None, "it is freed as without a watch"
OfItsOwn(torch.nn.Linear(2, 2).parameters()).step()
child = os.fork()
if child == 0:
    train(200)
    os._exit(0)
os.waitpid(child, 0)
train(60)
time.sleep(0.2)
train(1)
"""


class Clock:
    """That stands still until it is told; a processor works a part of the time."""

    def __init__(self):
        self.now = self.worked = 0.0

    def pass_by(self, seconds, worked):
        self.now += seconds
        self.worked += worked

    def monotonic(self):
        return self.now

    def process_time(self):
        return self.worked


class CostlyLosses(unittest.TestCase):
    def reported(self, worked):
        """Iterations of which a loss is told, where each takes 10 ms and its loss 60 ms, of which so much is work."""
        sys.path.insert(0, MODULES)
        from tierpilot import hooks

        clock, told = Clock(), []

        class Job:
            @staticmethod
            def report(iteration, loss):
                told.append(iteration)

        def loss():
            clock.pass_by(0.06, worked)
            return 1.0

        real, hooks.time = hooks.time, clock
        try:
            progress = hooks.Progress(Job)
            for _ in range(100):
                clock.pass_by(0.01, 0.01)
                progress.advance(loss)
        finally:
            hooks.time = real
        return told

    def test_take_a_twentieth_of_the_time(self):
        self.assertEqual(self.reported(0.06), [1])

    def test_that_waited_for_a_processor_are_told_as_often_as_others(self):
        self.assertGreaterEqual(len(self.reported(0.002)), 9)


class UnchangedScripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.script = os.path.join(self.folder, "train.py")
        with open(self.script, "w") as file:
            file.write(SCRIPT)
        self.path = os.path.join(self.folder, "job.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen()

    def run_script(self, *command, **more):
        environment = dict(os.environ, PYTHONPATH=MODULES, **more)
        return subprocess.run(
            [os.path.join(MODULES, "tierpilot-run"), *command],
            env=environment, capture_output=True, text=True, timeout=120,
        )

    def reports(self):
        node, _ = self.listener.accept()
        with node, node.makefile() as lines:
            return [json.loads(line) for line in lines]

    def test_the_loss_of_each_iteration_that_is_told_is_that_of_the_script(self):
        done = self.run_script(PYTHON, self.script, "a", "b c", TIERPILOT_JOB_SOCKET=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = {int(line.split()[0]): float(line.split()[1]) for line in done.stdout.splitlines()}
        reports = self.reports()
        self.assertEqual(reports[0]["iteration"], 1)
        self.assertAlmostEqual(reports[0]["loss"], printed[1], places=4)
        self.assertEqual(reports[-1]["iteration"], 31, "steps of one optimizer only")
        self.assertAlmostEqual(reports[-1]["loss"], printed[30], places=4)
        self.assertLess(len(reports), 31, "not at each step")
        self.assertEqual(sorted(r["iteration"] for r in reports), [r["iteration"] for r in reports])

    def test_trainings_one_after_the_other_are_counted_through_and_keep_nothing_alive(self):
        with open(self.script, "w") as file:
            file.write(ONE_AFTER_THE_OTHER)
        done = self.run_script(PYTHON, self.script, TIERPILOT_JOB_SOCKET=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        iterations = [report["iteration"] for report in self.reports()]
        self.assertEqual(iterations[-1], 101, "the fork's are its own")
        self.assertGreater(sum(40 < iteration < 100 for iteration in iterations), 1)

    def test_a_loss_in_the_place_of_a_scaled_one_is_its_own(self):
        sys.path.insert(0, MODULES)
        from tierpilot.hooks.torch_loop import Steps

        class Loss:
            def __init__(self, value):
                self.value = value

            def numel(self):
                return 1

            def detach(self):
                return self

        steps = Steps(None)
        for value in range(100):  # who comes next often lies where the last one did
            scaled = Loss(1000)
            steps.scaled(Loss(value), scaled)
            steps.backward(scaled)
            self.assertEqual(steps._loss.value, value)
            del scaled
            steps.backward(Loss(-value))
            self.assertEqual(steps._loss.value, -value)

    def test_without_a_node_it_just_runs_and_an_end_that_is_bad_stays_bad(self):
        with open(self.script, "a") as file:
            file.write("print('all of it')\nsys.exit(7)\n")
        done = self.run_script(PYTHON, self.script, "a", "b c")
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertTrue(done.stdout.endswith("all of it\n"), done.stdout)

    def test_a_library_that_is_built_otherwise_is_left_alone(self):
        package = os.path.join(self.folder, "sklearn", "cluster")
        os.makedirs(package)
        for module, text in (
            (os.path.join(self.folder, "sklearn", "__init__.py"), ""),
            (os.path.join(package, "__init__.py"), ""),
            (os.path.join(package, "_kmeans.py"), "def _mini_batch_step(X): return 'done'\n"),
        ):
            with open(module, "w") as file:
                file.write(text)
        with open(self.script, "w") as file:
            file.write("from sklearn.cluster import _kmeans\nprint(_kmeans._mini_batch_step(None))\n")
        done = self.run_script(PYTHON, self.script, TIERPILOT_JOB_SOCKET=self.path)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.assertIn("sklearn.cluster._kmeans is not reported", done.stderr)

    def test_what_is_wrong_is_said(self):
        for command, word in (
            ([PYTHON, os.path.join(self.folder, "none.py")], "does not exist"),
            (["/bin/true"], "no python3"),
            ([PYTHON, "-m"], "name"),
        ):
            done = self.run_script(*command)
            self.assertEqual(done.returncode, 2, command)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    if not importlib.util.find_spec("torch"):
        print("python3-torch is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
