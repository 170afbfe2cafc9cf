"""What a training job says to the Tierpilot node that runs it, and is told by it.

    import tierpilot
    job = tierpilot.job()
    for step in range(steps):
        ...
        job.report(iteration=step, iterations=steps, loss=float(loss))
        if job.should_checkpoint():
            torch.save(state, "state.pt")
            job.checkpoint("state.pt", iteration=step)
        if job.should_stop():
            break

Where no Tierpilot runs the program, all of this does nothing. Only checkpoint() waits for the node,
and nothing raises because of it: a report that cannot be sent at once is dropped. Threads and
handlers of signals may call all of it at any time. The standard library is all that is needed.

swap() keeps a PyTorch training within a memory budget, and describe() makes the model card of a
PyTorch module: these two need PyTorch. `python3 -m tierpilot SCRIPT` reports the losses of a script
that knows nothing of Tierpilot.
"""

from .job_channel import Job, job

__all__ = ["Job", "describe", "job", "swap"]


def swap(budget=None, policy="swap", tiers=None, recompute=False, plan_file=None, states=None, device=None):
    """Keeps a PyTorch training within a memory budget, as "4GiB": see tierpilot-swap(1).

        with tierpilot.swap(budget="4GiB"):
            loss = model(x).sum()
        loss.backward()

    Without a budget it is TIERPILOT_SWAP_BUDGET, and without tiers they are TIERPILOT_SWAP_TIERS: a
    Tierpilot task that was submitted with room for swapping has both. Workers that torchrun starts
    divide what these say.

    With `recompute`, blocks of the model are computed again in the backward pass where that is
    cheaper than copies: their forward passes have to depend on their inputs and weights alone.

    What optimisers of torch.optim keep for their parameters leaves between their steps, too, from the
    first `with` on: on a processor with policy "swap", elsewhere with `states=True`; never with
    `states=False`.

    The budget is of the memory of `device`: "cpu", "cuda" or "cuda:N". If it is not said, it is a GPU
    that PyTorch uses by then, else the processor. Tensors of others stay where they are.

    What was learned is kept in `plan_file` at the end of the program, and the next run starts from it.

    Needs PyTorch, from 1.13 on, and libtierpilot-swap, which are loaded with the first call.
    """
    from . import swapping

    return swapping.swap(budget, policy, tiers, recompute, plan_file, states, device)


def describe(module, example_inputs, batch=None, iterations=None, job=None):
    """The model card of a PyTorch module, as `--model-card` wants it: a dict.

        json.dump(tierpilot.describe(model, torch.randn(32, 784), iterations=5000), file)

    Needs PyTorch, from 1.13 on; no GPU. tierpilot.cards.describe() tells of its arguments.
    """
    from . import cards

    return cards.describe(module, example_inputs, batch, iterations, job)
