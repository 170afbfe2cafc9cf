#!/usr/bin/python3
"""Unchanged scikit-learn scripts report their loss; a node is played by this test."""
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

DATA = """
import warnings
import numpy as np
warnings.simplefilter("ignore")
random = np.random.default_rng(1)
X = random.normal(size=(3000, 20))
y = (X @ random.normal(size=20) + random.normal(size=3000) > 0).astype(int)
"""

# What trains, and what it prints at the end as the loss that it ended with; None: it prints none.
TRAININGS = {
    "perceptron": """
from sklearn.neural_network import MLPClassifier
model = MLPClassifier((16,), max_iter=60, random_state=1).fit(X, y)
print(model.loss_curve_[-1])
""",
    "perceptron by lbfgs": """
from sklearn.neural_network import MLPClassifier
model = MLPClassifier((64,), solver="lbfgs", max_iter=200, random_state=1).fit(X, y)
print(model.loss_)
""",
    "logistic regression": """
from sklearn.linear_model import LogisticRegression
wide = random.normal(size=(20000, 300))
model = LogisticRegression(C=100.0, max_iter=200, tol=1e-9).fit(wide, random.integers(0, 8, 20000))
""",
    "boosting": """
from sklearn.ensemble import GradientBoostingClassifier
told = []
model = GradientBoostingClassifier(n_estimators=60, random_state=1)
model.fit(X, y, monitor=lambda i, *rest: told.append(i))
assert told == list(range(60)), told
print(model.train_score_[-1])
""",
    "boosting of histograms": """
from sklearn.ensemble import HistGradientBoostingClassifier
model = HistGradientBoostingClassifier(max_iter=150, early_stopping=True, n_iter_no_change=1000,
                                       scoring="loss", random_state=1).fit(X, y)
print(-model.train_score_[-1])
""",
    "k-means": """
from sklearn.cluster import KMeans
points = random.normal(size=(40000, 8))
model = KMeans(60, n_init=1, init="random", tol=0, max_iter=100, random_state=1).fit(points)
print(model.inertia_ / len(points))
""",
    "k-means by Elkan": """
from sklearn.cluster import KMeans
points = random.normal(size=(40000, 8))
model = KMeans(60, n_init=1, init="random", tol=0, max_iter=100, algorithm="elkan",
               random_state=1).fit(points)
print(model.inertia_ / len(points))
""",
    "k-means of batches": """
from sklearn.cluster import MiniBatchKMeans
points = random.normal(size=(40000, 8))
MiniBatchKMeans(60, n_init=1, max_no_improvement=None, max_iter=10, random_state=1).fit(points)
""",
    # Its loss costs a good part of an iteration, so it is told every twenty or so.
    "topics": """
from sklearn.decomposition import LatentDirichletAllocation
words = random.poisson(random.dirichlet(np.ones(200) * 0.1, 10)[random.integers(0, 10, 500)] * 80)
model = LatentDirichletAllocation(10, max_iter=75, learning_method="batch", random_state=1).fit(words)
""",
    "stochastic gradient descent": """
import time
from sklearn.linear_model import SGDClassifier
model = SGDClassifier(random_state=1)
for epoch in range(30):
    model.partial_fit(X, y, classes=[0, 1])
    time.sleep(0.02)
""",
}


class UnchangedScripts(unittest.TestCase):
    kept = {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "train.py")
        self.path = os.path.join(folder.name, "job.sock")

    def run_script(self, text, **more):
        with open(self.script, "w") as file:
            file.write(text)
        path = os.pathsep.join(filter(None, (MODULES, os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [os.path.join(MODULES, "tierpilot-run"), PYTHON, self.script],
            env=dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS="1", **more),
            capture_output=True, text=True, timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def reports_of(self, text):
        if os.path.exists(self.path):
            os.unlink(self.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.path)
            listener.listen()
            printed = self.run_script(text, TIERPILOT_JOB_SOCKET=self.path)
            node, _ = listener.accept()
            with node, node.makefile() as lines:
                return printed, [json.loads(line) for line in lines]

    def of(self, name):
        """What such a training printed and reported."""
        if name not in self.kept:
            self.kept[name] = self.reports_of(DATA + TRAININGS[name])
        return self.kept[name]

    def test_each_kind_reports_a_loss_that_falls_to_what_it_ends_with(self):
        for name in TRAININGS:
            with self.subTest(name):
                printed, reports = self.of(name)
                self.assertGreaterEqual(len(reports), 2, reports)
                iterations = [report["iteration"] for report in reports]
                self.assertEqual(iterations, sorted(set(iterations)))
                losses = [report["loss"] for report in reports]
                self.assertLess(losses[-1], losses[0], losses)
                # The last is of some iterations before the end, as they are told now and then.
                if printed:
                    self.assertAlmostEqual(losses[-1], float(printed[0]),
                                           delta=0.3 * abs(losses[0] - float(printed[0])))

    def test_results_are_what_they_are_without(self):
        names = ("k-means", "perceptron", "boosting")  # only the first of them draws random numbers of the script
        plain = self.run_script(DATA + "".join(TRAININGS[name] for name in names))
        self.assertEqual([printed for name in names for printed in self.of(name)[0]], plain)


if __name__ == "__main__":
    if not importlib.util.find_spec("sklearn"):
        print("python3-sklearn is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
