"""scikit-learn's latent Dirichlet allocation: the loss is the perplexity of some documents."""

import functools

_DOCUMENTS = 256


def watch(module, progress):
    base = module.LatentDirichletAllocation
    step = base._em_step

    @functools.wraps(step)
    def watched(self, X, *arguments, **options):
        result = step(self, X, *arguments, **options)
        progress.advance(lambda: self._perplexity_precomp_distr(X[:_DOCUMENTS]))
        return result

    base._em_step = watched
