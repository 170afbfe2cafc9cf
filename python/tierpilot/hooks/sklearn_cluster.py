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
        progress.advance(lambda: inertia / X.shape[0], known=True)
        return inertia

    module._mini_batch_step = watched_step


def _watch_iteration(module, name, inertia_name, progress):
    iterate = getattr(module, name)
    inertia = getattr(module, inertia_name)

    labels_at = 2 if name.startswith("lloyd") else 6  # of the arguments after the first three

    def mean_of(X, sample_weight, centers, arguments):
        threads = arguments[-1]
        return inertia(X, sample_weight, centers, arguments[labels_at], threads) / X.shape[0]

    @functools.wraps(iterate)
    def watched(X, sample_weight, centers, *arguments, **options):
        result = iterate(X, sample_weight, centers, *arguments, **options)
        if options.get("update_centers", True):
            progress.advance(lambda: mean_of(X, sample_weight, centers, arguments))
        return result

    setattr(module, name, watched)
