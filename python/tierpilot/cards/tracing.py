"""What a module's forward pass does, seen as its operators are dispatched."""

import weakref
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..randomness import random_states, set_random_states
from .costs import flops, kept_elements
from .kinds import IGNORED, IGNORED_NAMESPACES, kind_of

_MOST_NAMED = 100  # unknown operators
_MOST_NAME_BYTES = 80
_OF_GATED_STEP = 11  # operators of a step of an LSTM or of gated units
# Their first output is the value; others are kept for the backward pass.
_ONE_VALUE = frozenset(["MaxPool", "BatchNorm", "LayerNorm", "Dropout", "Gather"])
# What is one operator in a model's file, and many of PyTorch's.
_WHOLE = {
    torch.nn.RNNBase: "Recurrent",
    torch.nn.RNNCellBase: "Recurrent",
    torch.nn.modules.dropout._DropoutNd: "Dropout",
}


def tensors_in(values):
    for value in values:
        if torch.is_tensor(value):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
        elif isinstance(value, Mapping):
            yield from tensors_in(value.values())


def _bytes(tensor):
    return kept_elements(tensor) * tensor.element_size()


def _recurrent(module, data):
    """Operations and operators where PyTorch runs the layer as one operator: as if step by step."""
    weights = sum(weight.numel() for weight in module.parameters() if weight.dim() > 1)
    places = data.numel() // module.input_size
    steps = 1
    if isinstance(module, torch.nn.RNNBase) and data.dim() == 3:
        steps = data.shape[1 if module.batch_first else 0]
        steps *= module.num_layers * (2 if module.bidirectional else 1)
    of_step = 3 if isinstance(module, (torch.nn.RNN, torch.nn.RNNCell)) else _OF_GATED_STEP
    return 2 * places * weights, of_step * steps


@contextmanager
def _without_whole_layers():
    """Attention and encoder layers in eval mode otherwise run as one operator, whose products are not seen."""
    if hasattr(torch.backends, "mha") and hasattr(torch.backends.mha, "set_fastpath_enabled"):
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(before)
        return
    # Before PyTorch 2.2 only autocast prevents it for any layer: that of GPUs, to the type that tensors have anyway.
    before = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
    torch.set_autocast_gpu_dtype(torch.float32)
    torch.set_autocast_enabled(True)
    try:
        yield
    finally:
        torch.set_autocast_enabled(before[0])
        torch.set_autocast_gpu_dtype(before[1])


def _restore(buffer, own, before):
    """`own` is its memory as it was before the pass, and `before` a copy of the values in it."""
    if _is_elsewhere(buffer, own):
        buffer.data = own
    if _is_same(buffer, before):
        return  # it may be one that cannot be written to, or that is kept for gradients
    # Inference tensors can be written to in that mode only, and others in it, too.
    with torch.inference_mode():
        for dimension in _repeated(buffer):
            buffer, before = buffer.narrow(dimension, 0, 1), before.narrow(dimension, 0, 1)
        buffer.copy_(before)


def _is_elsewhere(buffer, own):
    try:
        return not buffer.is_set_to(own)
    except RuntimeError:  # of a kind that has no such question
        return buffer.is_meta and buffer.shape != own.shape


def _is_same(tensor, other):
    """To the bit, as what is no number equals nothing."""
    if tensor.is_meta:
        return True
    if tensor.is_quantized:  # whose bits cannot be looked at
        return torch.equal(tensor, other)
    try:
        bits = [each.detach().reshape(-1).view(torch.uint8) for each in (tensor, other)]
        return torch.equal(*bits)
    except RuntimeError:  # of a kind that cannot be compared, as sparse ones
        return False


def _repeated(tensor):
    """Dimensions along which all is one element's memory, which cannot be written to as a whole."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.numel() == 0:
        return []
    return [dimension for dimension, stride in enumerate(tensor.stride()) if stride == 0]


class _Known:
    """What is known of tensors, as long as they live."""

    def __init__(self):
        self._values = {}

    def put(self, tensor, value):
        self._values[id(tensor)] = (weakref.ref(tensor), value)

    def get(self, tensor):
        reference, value = self._values.get(id(tensor), (None, None))
        return value if reference is not None and reference() is tensor else None


class _Mode(TorchDispatchMode):
    def __init__(self, tracer):
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # In inference mode operators come as they are called; otherwise as what they are made of.
        if torch.is_inference_mode_enabled():
            with self:
                result = operator.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = operator(*args, **kwargs)
        outputs = list(tensors_in([result]))
        self._tracer.dispatched(operator, (*args, *kwargs.values()), outputs)
        return result


class Tracer:
    """Counts what one forward pass of the module does."""

    def __init__(self, module):
        self._module = module
        self._operators = {}
        self._unknown = {}
        self._parameters = _Known()
        self._depths = _Known()
        self._whole = None  # of the operator that is being seen as one
        self._depth = self._launches = 0
        self._activation_bytes = self._traffic_bytes = 0
        self._flops = 0
        self._kept = list({id(p): p for p in (*module.parameters(), *module.buffers())}.values())
        for parameter in self._kept:
            self._parameters.put(parameter, True)

    def run(self, arguments, named):
        """The module's buffers and the random numbers are afterwards what they were before."""
        with ExitStack() as stack:
            self._keep_buffers(stack)
            for each in self._module.modules():
                kind = next((kind for one, kind in _WHOLE.items() if isinstance(each, one)), None)
                if kind is not None:
                    self._see_as_one(each, kind, stack)
            stack.callback(set_random_states, random_states())
            stack.enter_context(torch.no_grad())
            stack.enter_context(_without_whole_layers())
            with _Mode(self):
                self._forward(arguments, named)

    def _keep_buffers(self, stack):
        """Their values, and which they are: a pass may put other tensors in their places."""
        own = [(buffer, buffer.detach()) for buffer in self._module.buffers()]
        values = [(buffer, memory, memory.clone()) for buffer, memory in own]
        # Nothing is put in those of a script, which are no dict.
        every = [each._buffers for each in self._module.modules()]
        places = [(names, dict(names)) for names in every if isinstance(names, dict)]

        def restore():
            for names, before in places:
                names.clear()
                names.update(before)
            wrong = []
            for each in values:
                try:
                    _restore(*each)
                except Exception as error:  # the others are to be what they were
                    wrong.append(error)
            if wrong:
                raise wrong[0]

        stack.callback(restore)

    def _forward(self, arguments, named):
        try:
            self._module(*arguments, **named)
        except RuntimeError as error:
            if "does not require grad" not in str(error):
                raise
            raise ValueError(
                "module: its forward pass computes gradients, and is run without them: have it do so within "
                "`with torch.enable_grad():`"
            ) from error

    def dispatched(self, operator, arguments, outputs):
        namespace, _, name = str(operator.overloadpacket).rpartition(".")
        inputs = list(tensors_in(arguments))
        if name in IGNORED or namespace in IGNORED_NAMESPACES:
            return
        kind = kind_of(name) if namespace == "aten" else None
        if self._is_of_parameters(kind, inputs, outputs):
            return
        if kind in _ONE_VALUE:
            outputs = outputs[:1]
        if self._whole is not None:
            self._add_to_whole(name, kind, arguments, outputs)
            return
        if kind is None:
            self._count_unknown(name if namespace == "aten" else f"{namespace}.{name}")
            kind = "Unknown"
        if kind == "Conv2D":
            kind = self._convolution(arguments)
        self._add(kind, inputs, outputs, flops(name, kind, arguments, outputs), 1)

    def figures(self):
        """The card's part that describes the model."""
        sizes = [parameter for parameter in self._kept if parameter.numel()]
        return {
            "operators": {kind: self._operators[kind] for kind in sorted(self._operators)},
            "parameters": sum(kept_elements(tensor) for tensor in sizes),
            "parameter_bytes": sum(_bytes(tensor) for tensor in sizes),
            "parameter_tensors": len(sizes),
            "activation_bytes": self._activation_bytes,
            "traffic_bytes": self._traffic_bytes,
            "flops": self._flops,
            "depth": self._depth,
            "launches": self._launches,
            "unknown_operators": self._unknown,
            "unknown_shapes": 0,
            "guessed": [],
            "uncertain": bool(self._unknown),
        }

    def _is_of_parameters(self, kind, inputs, outputs):
        """A transposed weight is still that weight, and costs nothing; nor does a counted batch."""
        if not inputs or not outputs or not self._parameters.get(inputs[0]):
            return False
        if outputs[0] is inputs[0]:
            return True
        if kind not in ("Shape", "Transpose") or len(inputs) != 1:
            return False
        for output in outputs:
            self._parameters.put(output, True)
        return True

    def _convolution(self, arguments):
        data, weight = arguments[0], arguments[1]
        if len(arguments) > 2 and torch.is_tensor(arguments[2]):
            self._use("BiasAdd")["count"] += 1
        if len(arguments) > 6 and arguments[6] is True:
            return "Conv2DTranspose"
        return "DepthwiseConv2D" if weight.shape[1] == 1 and data.shape[1] > 1 else "Conv2D"

    def _use(self, kind):
        names = ("count", "largest_input", "input_sum", "output_sum", "parameter_sum", "flops")
        return self._operators.setdefault(kind, dict.fromkeys(names, 0))

    def _add(self, kind, inputs, outputs, cost, launches):
        use = self._use(kind)
        use["count"] += 1
        depth = 1 + max((self._depths.get(tensor) or 0 for tensor in inputs), default=0)
        self._depth = max(self._depth, depth)
        self._launches += launches
        for tensor in inputs:
            self._traffic_bytes += _bytes(tensor)
            if self._parameters.get(tensor):
                use["parameter_sum"] += kept_elements(tensor)
                continue
            use["largest_input"] = max(use["largest_input"], kept_elements(tensor))
            use["input_sum"] += kept_elements(tensor)
        for tensor in outputs:
            self._depths.put(tensor, depth)
            use["output_sum"] += kept_elements(tensor)
            self._activation_bytes += _bytes(tensor)
            self._traffic_bytes += _bytes(tensor)
        use["flops"] += cost
        self._flops += cost

    def _count_unknown(self, name):
        name = name[:_MOST_NAME_BYTES]
        if name not in self._unknown and len(self._unknown) >= _MOST_NAMED:
            name = "others"
        self._unknown[name] = self._unknown.get(name, 0) + 1

    def _see_as_one(self, module, kind, stack):
        """Not by hooks, which are not told where it fails."""
        forward, own = module.forward, vars(module).get("forward")

        def seen(*inputs, **named):
            if self._whole is not None:
                return forward(*inputs, **named)
            whole = self._whole = {"flops": 0, "launches": 0}
            try:
                outputs = forward(*inputs, **named)
            finally:
                self._whole = None
            self._add_whole(module, kind, whole, list(tensors_in([inputs, named])), list(tensors_in([outputs])))
            return outputs

        def restore():
            if own is None:
                del module.forward
            else:
                module.forward = own

        module.forward = seen
        stack.callback(restore)

    def _add_whole(self, module, kind, whole, inputs, made):
        cost, launches = made[0].numel(), 1
        if kind == "Recurrent":
            cost, launches = whole["flops"], max(1, whole["launches"])
            if not cost:
                cost, launches = _recurrent(module, inputs[0])
        self._add(kind, [*inputs, *module.parameters()], made, cost, launches)

    def _add_to_whole(self, name, kind, arguments, outputs):
        if kind not in ("Shape", "Transpose"):
            self._whole["launches"] += 1
        if kind == "MatMul":
            self._whole["flops"] += flops(name, kind, arguments, outputs)
