"""scikit-learn's k-means: the loss is the inertia, the sum of squared distances to the nearest
centre, divided by the number of samples.
"""

import functools


def watch(module, progress):
    for kind in ("lloyd_iter_chunked", "elkan_iter_chunked"):
        for storage in ("dense", "sparse"):
            _watch_iteration(module, f"{kind}_{storage}", f"_inertia_{storage}", progress)
    step = module._mini_batch_step

    @functools.wraps(step)
    def watched_step(X, *arguments, **options):
        inertia = step(X, *arguments, **options)
        progress.advance(inertia / X.shape[0])
        return inertia

    module._mini_batch_step = watched_step


def _watch_iteration(module, name, inertia_name, progress):
    iterate = getattr(module, name)
    inertia = getattr(module, inertia_name)

    labels_at = 2 if name.startswith("lloyd") else 6  # of the arguments after the first three

    @functools.wraps(iterate)
    def watched(X, sample_weight, centers, *arguments, **options):
        iterate(X, sample_weight, centers, *arguments, **options)
        if not options.get("update_centers", True):
            return
        labels = arguments[labels_at]
        threads = options.get("n_threads", arguments[-1])
        progress.advance(lambda: inertia(X, sample_weight, centers, labels, threads) / X.shape[0])

    setattr(module, name, watched)
