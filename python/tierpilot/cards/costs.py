"""Floating point operations of one operator's forward pass; a multiply-add is two."""

import math

_FREE = frozenset(["Shape", "Transpose", "Gather", "Concat"])
_MATRICES = {"addmm": 1, "addmv": 1, "baddbmm": 1, "addbmm": 1, "_sparse_addmm": 1}
_OF_VECTORS = frozenset(["addr", "outer"])  # each element is one product


def kept_elements(tensor):
    """Of a sparse one those that it keeps."""
    if "sparse" not in str(tensor.layout):
        return tensor.numel()
    return (tensor._values() if tensor.is_sparse else tensor.values()).numel()


def flops(name, kind, arguments, outputs):
    """`arguments` as the operator got them; `outputs` its tensors."""
    made = outputs[0].numel() if outputs else 0
    if kind in _FREE:
        return 0
    if kind == "MatMul":
        return _product(name, arguments, made)
    if kind in ("Conv2D", "DepthwiseConv2D", "Conv2DTranspose"):
        weight = arguments[1]
        per_channel = weight.numel() // max(weight.shape[0], 1)
        given = arguments[0].numel() if kind == "Conv2DTranspose" else made
        return 2 * given * per_channel
    if kind == "Attention":
        return _attention(arguments, made)
    if kind == "Reduce":
        return arguments[0].numel() if hasattr(arguments[0], "numel") else made
    if kind in ("MaxPool", "AvgPool"):
        if "adaptive" in name:  # windows cover the input once
            return max(made, arguments[0].numel())
        return made * _window(name, arguments)
    if kind in ("BatchNorm", "LayerNorm", "Softmax"):
        return 5 * made
    return made


def _product(name, arguments, made):
    at = _MATRICES.get(name, 0)
    left, right = arguments[at], arguments[at + 1]
    operations = 2 * made
    if name not in _OF_VECTORS:
        operations *= left.shape[-1] if left.dim() else 1
    if name == "addbmm":
        operations *= left.shape[0]  # a product for each of a batch, and they are summed
    for matrix in (left, right):
        operations = operations * kept_elements(matrix) // max(matrix.numel(), 1)
    return operations


def _attention(arguments, made):
    """Queries times keys, and the weights times values; of one tensor it is self-attention."""
    query = arguments[0]
    key = arguments[1] if len(arguments) > 1 and hasattr(arguments[1], "shape") else query
    return 4 * made * (key.shape[-2] if key.dim() > 1 else 1)


def _window(name, arguments):
    size = arguments[1] if len(arguments) > 1 else 1
    size = list(size) if isinstance(size, (list, tuple)) else [size]
    dimensions = int(name.split("pool")[1][0])
    return math.prod(size * dimensions if len(size) == 1 else size)
