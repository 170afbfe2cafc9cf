ROWS = ["all fast", "all far", "first touch", "by hand", "kernel", "tierpilot"]


def programs(out, report):
    """{"hot-set": {"tierpilot": row, ...}, ...}"""
    return {program["program"]: {row["row"]: row for row in program["rows"]}
            for program in out.json(report)["programs"]}


def check_row(row, name):
    assert "trouble" not in row, f"{name}: {row['trouble']}"
    assert row["operations_per_s"]["median"] > 0, f"{name}: {row}"
    assert row["wrong_answers"]["max"] == 0, f"{name}: {row}"


# Where pages are does not depend on how busy the host is, as speeds do.
def fast_shares(rows):
    return {name: row["fast_access_share"]["median"] for name, row in rows.items()}


def check_rows(rows, name):
    for row, figures in rows.items():
        check_row(figures, f"{name}, {row}")


def check(out):
    hot = programs(out, "all.json")["hot-set"]
    check_rows(hot, "hot-set")
    assert list(hot) == ROWS, list(hot)
    fast = fast_shares(hot)
    assert fast["all far"] == 0 and fast["all fast"] == 1, fast

    others = programs(out, "others.json")
    assert others.keys() == {"streaming", "key-value"}, list(others)
    for program, rows in others.items():
        check_rows(rows, program)
        assert fast_shares(rows)["tierpilot"] > 0.2, f"{program}: {fast_shares(rows)}"

    long = programs(out, "hot-set.json")["hot-set"]
    check_rows(long, "hot-set, long")
    fast = fast_shares(long)
    assert fast["tierpilot"] > max(0.2, fast["first touch"] + 0.2), fast
    assert out.text("numa_balancing").strip() == "0", "the kernel's settings were not put back"
    assert out.text("demotion").strip() == "false", "the kernel's settings were not put back"
    assert out.text("kdamonds").strip() == "0", "kdamonds were left behind"
