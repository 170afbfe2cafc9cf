"""Model cards of PyTorch modules: the same JSON as `tierctl model describe` makes of ONNX files.

docs/model-card.schema.json describes it.
"""

import math

import torch

from .tracing import Tracer

SCHEMA = 1


def describe(module, example_inputs, batch=None, iterations=None, job=None):
    """The model card of a module, a dict.

    `example_inputs` is what it is called with: a tensor, a tuple of them, or a dict of arguments.
    The module runs forward once, where it is (on the CPU or on "meta" too), and stays what it was.
    `batch`: samples in an iteration; the first dimension of the first tensor where it is not told.
    `iterations`: of the whole job. `job`: what else is known of it: "optimizer", its class's name;
    "threads"; and of its input pipeline "samples_per_s" that it delivers, or "load_s" that an
    iteration waits for its batch, and whether it "loads_ahead" while the model computes.
    """
    arguments, named = _arguments(example_inputs)
    tensors = [value for value in (*arguments, *named.values()) if torch.is_tensor(value)]
    if not tensors:
        raise ValueError("example_inputs: there is no tensor in it")
    if batch is None:
        batch = tensors[0].shape[0] if tensors[0].dim() else 1
    tracer = Tracer(module)
    tracer.run(arguments, named)
    card = {"schema": SCHEMA, "kind": "model card", "producer": f"pytorch {torch.__version__}"}
    card["opset"] = 0
    card["batch"] = _whole("batch", batch)
    card["input_elements"] = sum(tensor.numel() for tensor in tensors)
    card.update(tracer.figures())
    about = _job(iterations, job or {})
    if about:
        card["job"] = about
    return card


def _arguments(example_inputs):
    if isinstance(example_inputs, dict):
        return (), example_inputs
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def _job(iterations, given):
    about = {}
    if iterations is not None:
        about["iterations"] = _whole("iterations", iterations)
    for name, value in given.items():
        if name == "optimizer":
            about[name] = str(value)
        elif name == "threads":
            about[name] = _whole(name, value)
        elif name == "loads_ahead":
            about[name] = bool(value)
        elif name in ("samples_per_s", "load_s"):
            about[name] = _figure(name, value)
        else:
            raise ValueError(f"job: nobody knows '{name}'")
    return about


def _whole(name, value):
    if value != int(value) or value < 1:
        raise ValueError(f"{name}: {value} is no whole number above 0")
    return int(value)


def _figure(name, value):
    least = 0 if name == "load_s" else 1e-9
    if not least <= value < math.inf:
        raise ValueError(f"{name}: {value} is out of range")
    return float(value)
