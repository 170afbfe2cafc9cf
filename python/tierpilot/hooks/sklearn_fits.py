"""scikit-learn's estimators that know their loss after each iteration.

Those that train within one call of compiled code (libsvm, liblinear, coordinate descent, and fit()
of stochastic gradient descent) have none to tell.
"""

import functools


def watch_perceptrons(module, progress):
    base = module.BaseMultilayerPerceptron
    update = base._update_no_improvement_count  # is called after each epoch

    @functools.wraps(update)
    def watched(self, *arguments, **options):
        result = update(self, *arguments, **options)
        progress.advance(lambda: self.loss_curve_[-1], known=True)
        return result

    base._update_no_improvement_count = watched


def watch_boosting(module, progress):
    base = module.BaseGradientBoosting
    fit = base.fit

    @functools.wraps(fit)
    def watched(self, X, y, sample_weight=None, monitor=None):
        def one_more(stage, estimator, variables):
            progress.advance(lambda: estimator.train_score_[stage], known=True)
            return monitor(stage, estimator, variables) if monitor else False

        return fit(self, X, y, sample_weight=sample_weight, monitor=one_more)

    base.fit = watched


def watch_histograms(module, progress):
    """Only where it stops early, which is its default for more than 10,000 samples."""
    base = module.BaseHistGradientBoosting
    for name in ("_check_early_stopping_loss", "_check_early_stopping_scorer"):
        _watch_check(base, name, progress)


def _watch_check(base, name, progress):
    check = getattr(base, name)

    @functools.wraps(check)
    def watched(self, *arguments, **options):
        result = check(self, *arguments, **options)
        progress.advance(lambda: -self.train_score_[-1], known=True)
        return result

    setattr(base, name, watched)


def watch_descent(module, progress):
    """partial_fit(): of its batch, the share that is classified wrongly, or the squared error."""
    for base, loss in (
        (module.BaseSGDClassifier, lambda self, X, y: 1 - self.score(X, y)),
        (module.BaseSGDRegressor, lambda self, X, y: ((self.predict(X) - y) ** 2).mean()),
    ):
        _watch_partial_fit(base, loss, progress)


def _watch_partial_fit(base, loss, progress):
    partial_fit = base.partial_fit

    @functools.wraps(partial_fit)
    def watched(self, X, y, *arguments, **options):
        result = partial_fit(self, X, y, *arguments, **options)
        progress.advance(lambda: loss(self, X, y))
        return result

    base.partial_fit = watched
