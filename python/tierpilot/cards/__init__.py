"""Model cards of PyTorch modules: the same JSON as `tierctl model describe` makes of ONNX files.

docs/model-card.schema.json describes it.
"""

import re
from collections.abc import Mapping
from numbers import Real

import torch

from .tracing import Tracer, tensors_in

SCHEMA = 1
# As those who read cards have them.
_MOST, _MOST_COUNTED, _MOST_THREADS, _MOST_BATCH = 1e18, 1e15, 1e5, 4e9
_COUNTED = frozenset(["count", "depth", "launches", "opset", "parameter_tensors", "unknown_shapes"])


def describe(module, example_inputs, batch=None, iterations=None, job=None):
    """The model card of a module, a dict.

    `example_inputs` is what it is called with: a tensor, a tuple of arguments, or a dict of them.
    The module runs forward once, where it is (on the CPU or on "meta" too), without gradients; its buffers
    are afterwards what they were.
    `batch`: samples in an iteration; the first dimension of the first tensor where it is not told.
    `iterations`: of the whole job. `job`: what else is known of it: "optimizer", itself or its
    class's name; "threads"; and of its input pipeline "samples_per_s" that it delivers, or "load_s" that an
    iteration waits for its batch, and whether it "loads_ahead" while the model computes.
    """
    arguments, named = _arguments(example_inputs)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: a torch.nn.Module is needed, not a {type(module).__name__}")
    weights = [*module.parameters(), *module.buffers()]
    if any(isinstance(each, torch.nn.parameter.UninitializedTensorMixin) for each in weights):
        raise ValueError("module: what it is made of is not known yet: run it once before, as it has lazy parameters")
    tensors = list(tensors_in([arguments, named]))
    if not tensors:
        raise ValueError("example_inputs: there is no tensor in it")
    if batch is None:
        batch = tensors[0].shape[0] if tensors[0].dim() else 1
    tracer = Tracer(module)
    tracer.run(arguments, named)
    card = {"schema": SCHEMA, "kind": "model card", "producer": f"pytorch {torch.__version__}"}
    card["opset"] = 0
    card["batch"] = _whole("batch", batch, _MOST_BATCH)
    card["input_elements"] = sum(tensor.numel() for tensor in tensors)
    card.update(tracer.figures())
    _check_limits(card)
    about = _job(iterations, {} if job is None else job)
    if about:
        card["job"] = about
    return card


def _check_limits(card):
    """What is described has to be good for those who read cards."""
    of_kinds = [(f" of {kind}", use) for kind, use in card["operators"].items()]
    for whose, figures in [("", card), *of_kinds]:
        for name, value in figures.items():
            most = _MOST_COUNTED if name in _COUNTED else _MOST
            if isinstance(value, Real) and value > most:
                raise ValueError(
                    f"module: no card can be made of it: its '{name}'{whose} would be {value:g}, and {most:g} is the most"
                )


def _arguments(example_inputs):
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def _job(iterations, given):
    if not isinstance(given, Mapping):
        raise TypeError(f"job: a dict is needed, not a {type(given).__name__}")
    about = {}
    if iterations is not None:
        iterations = _whole("iterations", iterations)
        given = {"iterations": iterations, **given}
        if given["iterations"] != iterations:
            raise ValueError(f"iterations: {iterations}, but job has {given['iterations']}")
    for name, value in given.items():
        if name == "optimizer":
            about[name] = _optimizer(value)
        elif name in ("threads", "iterations"):
            about[name] = _whole(name, value, _MOST_THREADS if name == "threads" else _MOST_COUNTED)
        elif name == "loads_ahead":
            about[name] = _truth(name, value)
        elif name in ("samples_per_s", "load_s"):
            about[name] = _figure(name, value)
        else:
            raise ValueError(f"job: nobody knows '{name}'")
    return about


def _optimizer(said):
    """Its class's name; "SGD+momentum" is another one than "SGD"."""
    if isinstance(said, torch.optim.Optimizer):
        momentum = type(said) is torch.optim.SGD and said.defaults.get("momentum", 0) > 0
        return "SGD+momentum" if momentum else type(said).__name__
    name = said.__name__ if isinstance(said, type) else said
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][\w.+-]{0,63}", name, re.ASCII):
        raise ValueError(f"job: its optimizer is {name!r:.80}: say its class's name, such as 'Adam'")
    return name


def _whole(name, value, most=_MOST_COUNTED):
    if not _is_number(value) or not 1 <= value <= most or value != int(value):
        raise ValueError(f"{name}: {value!r:.80} is no whole number from 1 to {most:.0f}")
    return int(value)


def _figure(name, value):
    least, most = (0, 1e6) if name == "load_s" else (1e-9, 1e12)
    if not _is_number(value) or not least <= value <= most:
        raise ValueError(f"{name}: {value!r:.80} is no number from {least:g} to {most:g}")
    return float(value)


def _truth(name, value):
    if value not in (False, True):
        raise ValueError(f"{name}: {value!r:.80} is neither True nor False")
    return bool(value)


def _is_number(value):
    """A tensor of one element is one too."""
    return isinstance(value, Real) or (torch.is_tensor(value) and value.numel() == 1)
