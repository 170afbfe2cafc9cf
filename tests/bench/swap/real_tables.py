"""What real_nets.py measured, as Markdown, worst row first."""

import statistics

MIB = 1 << 20


def table(headers, rows):
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def _share(value, other):
    return value / other if value and other else None


def _shown(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def _batches(nets):
    """Every policy; then `swap` with and without states that leave, to plain's, to vDNN's and to Capuchin's."""
    policies = list(dict.fromkeys(policy for net in nets.values() for policy in net.get("largest", {})))
    pairs = [(own, rival) for own in ("swap", "swap-activations") if own in policies for rival in ("plain", "vdnn", "capuchin")
             if rival in policies]
    rows = []
    for name, net in nets.items():
        found = net.get("largest", {})
        shares = [_share(found.get(own), found.get(rival)) for own, rival in pairs]
        rows.append((next(filter(None, shares), 0), [name, net["budget_bytes"] // MIB, *(found.get(policy, "-") for policy in policies),
                                      *map(_shown, shares)]))
    rows.sort(key=lambda row: row[0])
    headers = ["net", "budget MiB", *policies, *(f"{own} to {rival}" for own, rival in pairs)]
    return table(headers, [row for _, row in rows])


def _speeds(rows):
    """(net, batch, policy, row)"""

    def cells(net, batch, policy, row):
        head = [net, batch, policy]
        if not row["fits"]:
            return [*head, f"{row['failed']} in step {row['steps'] + 1}", *["-"] * 7]
        return [*head, f"{row['speed']:.2f} ({row['least']:.2f}-{row['most']:.2f})", f"{row['plain_seconds']:.2f}",
                row["peak_bytes"] // MIB, "yes" if row["equal"] else "NO", *(
                    _shown(row.get(key), digits)
                    for key, digits in (("stall_ms", 0), ("giving_ms", 0), ("out_mib", 0), ("late", 1)))]

    rows = sorted(rows, key=lambda row: row[3].get("speed", 0))
    return table(["net", "batch", "policy", "speed to plain's (least-most)", "plain's step s", "peak MiB", "equal",
                  "stalled ms", "gave back ms", "out MiB", "late"], [cells(*row) for row in rows])


def _curves(nets):
    """Medians of a quarter of the steps each, and the steps that were over the budget."""
    rows = []
    for name, net in nets.items():
        curve = dict(net.get("curve", {}))
        batch = curve.pop("batch", 0)
        for policy, seen in curve.items():
            times, over = seen["relative_time"], seen["over_budget"]
            part = max(len(times) // 4, 1)
            quarters = [statistics.median(times[at:at + part]) for at in range(0, part * 4, part) if times[at:at + part]]
            rows.append([name, batch, policy, len(times), *(f"{value:.2f}" for value in quarters), sum(over)])
    rows.sort(key=lambda row: -row[-1])
    return table(["net", "batch", "policy", "steps", *(f"time to plain's, {n}. quarter" for n in range(1, 5)), "over the budget"], rows)


def _tiers(measured):
    for number, tiers in enumerate(measured, 1):
        own, *others = tiers
        slow = "; ".join(f"{tier['name']}: out {tier['write_gb_per_s']:.2f} GB/s, in {tier['read_gb_per_s']:.2f} GB/s, "
                         f"latency {tier['latency_us']:.0f} us" for tier in others)
        yield f"Start {number}: memory is copied at {own['copy_gb_per_s']:.1f} GB/s; {slow}"


def text(results):
    nets = results["nets"]
    parts = ["\n".join(_tiers(results["tiers"])), "Largest batch within the budget:", _batches(nets)]
    double = [(name, net["double"]["batch"], policy, row)
              for name, net in nets.items() for policy, row in net.get("double", {}).get("rows", {}).items()]
    if double:
        parts += ["At twice plain's largest batch:", _speeds(double)]
    own = [(name, row["batch"], policy, row) for name, net in nets.items() for policy, row in net.get("own", {}).items()]
    if own:
        parts += ["At each policy's largest batch:", _speeds(own)]
    if any("curve" in net for net in nets.values()):
        parts += ["From a cold start at twice plain's largest batch, nobody ended:", _curves(nets)]
    return "\n\n".join(parts)
