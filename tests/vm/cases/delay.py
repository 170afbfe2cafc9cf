from harness import tiers

TOLERANCE = 0.10


def check(out):
    probed = tiers.by_node(out.json("latency.json"))
    near, far = probed[0], probed[1]
    extra_ns = far["latency_ns"]["p50"] - near["latency_ns"]["p50"]
    injected_ns = out.machine.far_ns
    figures = (f"injected {injected_ns} ns; measured {extra_ns:.0f} ns: near "
               f"{near['latency_ns']['p50']:.0f} ns (spread {near['spread']:.2f}), far "
               f"{far['latency_ns']['p50']:.0f} ns (spread {far['spread']:.2f}); "
               f"host load {out.load_1min:.1f}")
    print(figures)
    assert abs(extra_ns - injected_ns) <= TOLERANCE * injected_ns, figures
