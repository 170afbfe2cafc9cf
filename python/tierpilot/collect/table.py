"""A card and what was measured as a row of CSV; policies/sharing/predict reads it."""

KINDS = """Activation AddV2 Attention AvgPool BatchNorm BiasAdd Concat Conv2D Conv2DTranspose
    DepthwiseConv2D Dropout Elementwise Gather LayerNorm MatMul MaxPool Mul ReLU Recurrent Reduce
    Resize Shape Softmax Transpose Unknown""".split()
_OF_KIND = ("count", "largest_input", "input_sum", "output_sum", "parameter_sum", "flops")
_OF_CARD = """batch input_elements parameters parameter_bytes parameter_tensors activation_bytes
    traffic_bytes flops depth launches""".split()
_OF_JOB = ("iterations", "optimizer", "load_s", "loads_ahead", "threads")
MEASURED = """utilisation_milli memory_bytes iteration_s busy_s measured_iterations
    calibration_s""".split()
COLUMNS = [
    "architecture",
    "seed",
    *_OF_CARD,
    *_OF_JOB,
    *MEASURED,
    *(f"{kind}.{name}" for kind in KINDS for name in _OF_KIND),
]
# Behind them in a table of a GPU: what is known of it, the time of an iteration whose data is there, how many kernels
# that has, and use as the driver tells it.
GPU_COLUMNS = """step_s kernels driver_milli gpu_name gpu_compute_capability gpu_memory_bytes gpu_cores gpu_sm_clock_mhz
    gpu_memory_clock_mhz gpu_bus_width_bits""".split()


def text(value):
    """A cell as it stands in a table."""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) and not value.is_integer() else value


def row(architecture, seed, card, figures):
    """In the order of COLUMNS, and of GPU_COLUMNS where it was a GPU; a kind that a model has not is
    empty."""
    cells = [architecture, seed]
    cells += [card[name] for name in _OF_CARD]
    cells += [card["job"].get(name, "") for name in _OF_JOB]
    cells += [figures[name] for name in MEASURED]
    for kind in KINDS:
        use = card["operators"].get(kind, {})
        cells += [use.get(name) or "" for name in _OF_KIND]
    if "gpu_name" in figures:
        cells += [figures[name] for name in GPU_COLUMNS]
    return cells
