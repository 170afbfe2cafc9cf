"""scipy.optimize.minimize: what is minimised is the loss.

scikit-learn's logistic and Huber regression and its perceptrons use it (solver "lbfgs").
"""

import functools


def watch(optimize, progress):
    minimize = optimize.minimize

    @functools.wraps(minimize)
    def watched(fun, x0, *arguments, callback=None, **options):
        # callback is minimize's eleventh parameter: who gives so many by place is left alone.
        if len(arguments) > 8 or not callable(fun):
            return minimize(fun, x0, *arguments, callback=callback, **options)
        last = [None]

        def told(*parameters):
            result = fun(*parameters)
            last[0] = result[0] if isinstance(result, tuple) else result
            return result

        def one_more(*parameters, **named):
            # Minimisers end an iteration on the point that they evaluated last, or next to it.
            progress.advance(lambda: last[0], known=True)
            return callback(*parameters, **named) if callback else None

        # Newer versions look at what a callback's parameters are called.
        whose = functools.wraps(callback)(one_more) if callable(callback) else one_more
        return minimize(told, x0, *arguments, callback=whose, **options)

    optimize.minimize = watched
