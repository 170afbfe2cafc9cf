"""One training job of `quickstart quality`: train.py KIND [ITERATIONS [SEED]]. Prints a line for each
iteration: seconds since 1970, iteration, loss, CPU seconds until then.

Seven usual methods on data that they make themselves: linear and logistic regression and a small
multi-layer perceptron with PyTorch; a support vector machine, k-means, gradient-boosted trees and
latent Dirichlet allocation with scikit-learn. The losses of a kind and seed are the same in every
run, whatever its cores.
"""

import itertools
import math
import sys
import time

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

import tierpilot

SEED = int(sys.argv[3]) if len(sys.argv) == 4 else 0


def seeded(kind):
    """A seed of its own for each kind of job and each SEED."""
    return kind + 100 * SEED


def points(samples, features, kind):
    random = np.random.default_rng(seeded(kind))
    # Features of very unequal size: descent is quick at first and slow later.
    x = random.standard_normal((samples, features), dtype=np.float32)
    x *= np.logspace(0, -1.5, features, dtype=np.float32)
    truth = random.standard_normal(features, dtype=np.float32)
    return x, x @ truth, random


def descend(x, y, loss_of, rate, passes=1):
    """Full gradient descent of a linear model; yields its loss."""
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    weights = torch.zeros(x.shape[1], requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=rate)
    while True:
        for _ in range(passes):
            optimizer.zero_grad()
            loss = loss_of(x @ weights, y)
            loss.backward()
            optimizer.step()
        yield loss.item()


def linear():
    x, y, random = points(200_000, 200, 1)
    y = y + random.standard_normal(len(y), dtype=np.float32)
    return descend(x, y, torch.nn.functional.mse_loss, 0.2, passes=4)


def logistic():
    x, y, _ = points(200_000, 200, 2)
    labels = (y > 0).astype(np.float32)
    return descend(x, labels, torch.nn.functional.binary_cross_entropy_with_logits, 2.0, passes=4)


def svm():
    """By stochastic descent: an epoch is an iteration."""
    x, y, random = points(300_000, 100, 3)
    sides = np.sign(y + random.standard_normal(len(y), dtype=np.float32))
    model = SGDClassifier(loss="hinge", learning_rate="constant", eta0=1e-5, shuffle=False)
    while True:
        model.partial_fit(x, sides, classes=[-1, 1])
        yield float(np.maximum(1 - model.decision_function(x) * sides, 0).mean())


def kmeans():
    """By mini batches; the loss is the inertia of all points."""
    random = np.random.default_rng(seeded(4))
    truth = random.standard_normal((100, 30), dtype=np.float32) * 1.5
    x = truth[random.integers(100, size=400_000)]
    x += random.standard_normal(x.shape, dtype=np.float32)
    model = MiniBatchKMeans(100, init=x[:100], n_init=1, random_state=seeded(4))
    for batch in itertools.cycle(np.array_split(x, 400)):
        model.partial_fit(batch)
        yield -model.score(x) / len(x)


def trees():
    """A tree more in each iteration."""
    x, y, _ = points(20_000, 30, 5)
    y = np.sin(3 * y) + 0.5 * y
    model = GradientBoostingRegressor(n_estimators=0, learning_rate=0.3, warm_start=True, random_state=seeded(5))
    while True:
        model.n_estimators += 1
        model.fit(x, y)
        yield float(model.train_score_[-1])


def lda():
    """Topics of documents; the logarithm of the perplexity of some."""
    random = np.random.default_rng(seeded(6))
    topics = random.dirichlet(np.full(1000, 0.05), 20)
    words = random.poisson(80 * random.dirichlet(np.full(20, 0.2), 1200) @ topics)
    model = LatentDirichletAllocation(20, total_samples=len(words), random_state=seeded(6))
    while True:
        model.partial_fit(words)
        yield math.log(model.perplexity(words[:200]))


def fit(model, x, y, rate, batch, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    order = torch.Generator().manual_seed(seeded(7))
    while True:
        total = 0.0
        for _ in range(batches):
            rows = torch.randint(len(x), (batch,), generator=order)
            optimizer.zero_grad()
            loss = loss_of(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() / batches
        yield total


def mlp():
    torch.manual_seed(seeded(8))
    x = torch.randn(20_000, 100)
    teacher = torch.nn.Sequential(torch.nn.Linear(100, 30), torch.nn.Tanh(), torch.nn.Linear(30, 10))
    y = teacher(x).argmax(dim=1)
    model = torch.nn.Sequential(torch.nn.Linear(100, 400), torch.nn.ReLU(), torch.nn.Linear(400, 400),
                                torch.nn.ReLU(), torch.nn.Linear(400, 10))
    return fit(model, x, y, 0.02, 256, 24)


KINDS = {kind.__name__: kind
         for kind in (linear, logistic, svm, kmeans, trees, lda, mlp)}


def use_threads(count):
    torch.set_num_threads(count)
    threadpool_limits(count)  # what numpy and scikit-learn call


def main():
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(KINDS)} [ITERATIONS [SEED]]")
    iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    job = tierpilot.job()
    threads = 1
    use_threads(threads)
    losses = KINDS[sys.argv[1]]()
    for iteration in range(1, iterations + 1):
        wanted = max(1, math.ceil(job.cores() or 1))
        if wanted != threads:
            use_threads(wanted)
            threads = wanted
        loss = next(losses)
        job.report(iteration=iteration, iterations=iterations, loss=loss)
        print(f"{time.time():.3f} {iteration} {loss:.9g} {time.process_time():.3f}", flush=True)
        if job.should_stop():
            break


if __name__ == "__main__":
    main()
