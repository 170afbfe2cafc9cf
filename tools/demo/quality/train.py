"""One training job of `quickstart quality`: train.py KIND [ITERATIONS]. Prints a line for each iteration:
seconds since 1970, iteration, loss, CPU seconds until then.

Eight usual methods on data that they make themselves, with numpy and PyTorch: linear and logistic
regression, a support vector machine, k-means, gradient-boosted trees, latent Dirichlet allocation,
a small multi-layer perceptron and a small convolutional net. Each kind's losses are the same in
every run, whatever its cores.
"""

import math
import sys
import time

import numpy as np
import torch

import tierpilot


def points(samples, features, seed):
    random = np.random.default_rng(seed)
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
    x, y, random = points(200_000, 200, 3)
    sides = np.sign(y + random.standard_normal(len(y), dtype=np.float32)).astype(np.float32)
    return descend(x, sides, lambda score, y: torch.relu(1 - score * y).mean(), 0.3, passes=4)


def kmeans():
    random = np.random.default_rng(4)
    truth = random.standard_normal((60, 30), dtype=np.float32) * 1.5
    x = truth[random.integers(60, size=150_000)]
    x += random.standard_normal(x.shape, dtype=np.float32)
    x = torch.from_numpy(x)
    centres = x[:60].clone()
    while True:
        distance, nearest = torch.cdist(x, centres).min(dim=1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, x)
        counts = torch.bincount(nearest, minlength=60).clamp(min=1)
        # A part of the way, as with mini batches.
        centres += 0.1 * (sums / counts[:, None] - centres)
        yield distance.square().mean().item()


def trees():
    """Boosted trees of two levels on binned features."""
    x, y, _ = points(80_000, 30, 5)
    y = np.sin(3 * y) + 0.5 * y
    bins = np.stack([np.digitize(column, np.quantile(column, np.linspace(0, 1, 33)[1:-1]))
                     for column in x.T])
    left = y - y.mean()

    def best_split(rows):
        count, total = len(rows), left[rows].sum()
        best = (0.0, 0, 0)
        for feature, of in enumerate(bins):
            sums = np.bincount(of[rows], left[rows], 32).cumsum()[:-1]
            sizes = np.bincount(of[rows], minlength=32).cumsum()[:-1]
            fits = (sizes > 20) & (sizes < count - 20)
            gain = np.where(fits, sums**2 / np.maximum(sizes, 1)
                            + (total - sums)**2 / np.maximum(count - sizes, 1), 0)
            at = int(gain.argmax())
            best = max(best, (float(gain[at]), feature, at))
        return best[1:]

    every = np.arange(len(y))
    while True:
        leaves = [every]
        for _ in range(2):
            halves = []
            for rows in leaves:
                feature, at = best_split(rows)
                lower = bins[feature][rows] <= at
                halves += [rows[lower], rows[~lower]]
            leaves = halves
        for rows in leaves:
            if len(rows):
                left[rows] -= 0.3 * left[rows].mean()
        yield float((left**2).mean())


def lda():
    """Topics of documents, by variational expectation and maximisation; minus the likelihood."""
    random = np.random.default_rng(6)
    topics = random.dirichlet(np.full(1000, 0.05), 20).astype(np.float32)
    mixtures = random.dirichlet(np.full(20, 0.2), 4000).astype(np.float32)
    words = torch.from_numpy(random.poisson(80 * mixtures @ topics).astype(np.float32))
    found = torch.from_numpy(random.dirichlet(np.ones(1000), 20).astype(np.float32))
    share = torch.full((4000, 20), 1 / 20)
    while True:
        expected = share @ found + 1e-9
        ratio = words / expected
        grown = share * (ratio @ found.T) + 0.1
        found = found * (share.T @ ratio) + 1e-3
        share = grown / grown.sum(dim=1, keepdim=True)
        found = found / found.sum(dim=1, keepdim=True)
        yield -(words * expected.log()).sum().item() / words.sum().item()


def fit(model, x, y, rate, batch, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    order = torch.Generator().manual_seed(7)
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
    torch.manual_seed(8)
    x = torch.randn(20_000, 100)
    teacher = torch.nn.Sequential(torch.nn.Linear(100, 30), torch.nn.Tanh(), torch.nn.Linear(30, 10))
    y = teacher(x).argmax(dim=1)
    model = torch.nn.Sequential(torch.nn.Linear(100, 400), torch.nn.ReLU(), torch.nn.Linear(400, 400),
                                torch.nn.ReLU(), torch.nn.Linear(400, 10))
    return fit(model, x, y, 0.02, 256, 24)


def convnet():
    torch.manual_seed(9)
    patterns = torch.randn(10, 1, 20, 20)
    y = torch.randint(10, (6000,))
    x = patterns[y] + 2.5 * torch.randn(6000, 1, 20, 20)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(800, 10))
    return fit(model, x, y, 0.003, 128, 5)


KINDS = {kind.__name__: kind
         for kind in (linear, logistic, svm, kmeans, trees, lda, mlp, convnet)}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in KINDS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(KINDS)} [ITERATIONS]")
    iterations = int(sys.argv[2]) if len(sys.argv) == 3 else 100
    job = tierpilot.job()
    threads = 1
    torch.set_num_threads(threads)
    losses = KINDS[sys.argv[1]]()
    for iteration in range(1, iterations + 1):
        wanted = max(1, math.ceil(job.cores() or 1))
        if wanted != threads:
            torch.set_num_threads(wanted)
            threads = wanted
        loss = next(losses)
        job.report(iteration=iteration, iterations=iterations, loss=loss)
        print(f"{time.time():.3f} {iteration} {loss:.9g} {time.process_time():.3f}", flush=True)
        if job.should_stop():
            break


if __name__ == "__main__":
    main()
