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


def check(out):
    found = programs(out, "all.json")
    assert found.keys() == {"hot-set", "streaming", "key-value"}, list(found)
    found["hot-set, long"] = programs(out, "hot-set.json")["hot-set"]
    for program, rows in found.items():
        for name, row in rows.items():
            check_row(row, f"{program}, {name}")
        fast = fast_shares(rows)
        assert fast["tierpilot"] > 0.2 or program == "hot-set", f"{program}: {fast}"  # not at once
        if program == "hot-set, long":
            assert fast["tierpilot"] > fast["first touch"] + 0.2, fast
            continue
        assert list(rows) == ROWS, f"{program}: {list(rows)}"
        assert fast["all far"] == 0 and fast["all fast"] == 1, f"{program}: {fast}"
    assert out.text("numa_balancing").strip() == "0", "the kernel's settings were not put back"
    assert out.text("demotion").strip() == "false", "the kernel's settings were not put back"
    assert out.text("kdamonds").strip() == "0", "kdamonds were left behind"
