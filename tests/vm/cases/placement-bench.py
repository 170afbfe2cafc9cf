ROWS = ["all fast", "all far", "first touch", "by hand", "kernel", "tierpilot"]


def programs(out):
    """{"hot-set": {"tierpilot": row, ...}, ...}"""
    found = {}
    for name in ("hot-set.json", "others.json"):
        for program in out.json(name)["programs"]:
            found[program["program"]] = {row["row"]: row for row in program["rows"]}
    return found


def check(out):
    found = programs(out)
    assert found.keys() == {"hot-set", "streaming", "key-value"}, list(found)
    for program, rows in found.items():
        assert list(rows) == ROWS, f"{program}: {list(rows)}"
        for name, row in rows.items():
            assert "trouble" not in row, f"{program}, {name}: {row['trouble']}"
            assert row["operations_per_s"]["median"] > 0, f"{program}, {name}: {row}"
            assert row["wrong_answers"]["max"] == 0, f"{program}, {name}: {row}"
        # Where pages are does not depend on how busy the host is, as speeds do.
        fast = {name: row["fast_access_share"]["median"] for name, row in rows.items()}
        assert fast["all far"] == 0 and fast["all fast"] == 1, f"{program}: {fast}"
        assert fast["tierpilot"] > 0.2, f"{program}: {fast}"
    hot = {name: row["fast_access_share"]["median"] for name, row in found["hot-set"].items()}
    assert hot["tierpilot"] > hot["first touch"] + 0.2, hot
    assert out.text("numa_balancing").strip() == "0", "the kernel's settings were not put back"
    assert out.text("demotion").strip() == "false", "the kernel's settings were not put back"
    assert out.text("kdamonds").strip() == "0", "kdamonds were left behind"
