"""What a GoogleTest program that ran through guest/unit-test found."""


def results(out, program):
    """{"Suite.Test": "passed", "failed" or "skipped"}"""
    found = {}
    for suite in out.json(f"{program}.json")["testsuites"]:
        for test in suite["testsuite"]:
            state = "failed" if "failures" in test else test["result"].lower()
            found[f"{suite['name']}.{test['name']}"] = {"completed": "passed"}.get(state, state)
    return found


def assert_passed(out, program, *names):
    """No test failed, and those named, which skip on most machines, did not."""
    found = results(out, program)
    failed = [name for name, state in found.items() if state == "failed"]
    assert not failed, f"{program}: failed: {failed}"
    assert "passed" in found.values(), f"{program}: nothing ran"
    for name in names:
        assert found.get(name) == "passed", f"{program}: {name}: {found.get(name, 'no such test')}"
