"""Limits of a test's FLOP, for pytest, which finds this by itself where flopinj is installed:

    @pytest.mark.flop(max=3e12, mfu_min=0.3)
    def test_step():
        train_one_step()

Recorded is what the test does. Keywords are the limits: `max` and `min` of FLOP, `NAME_max` and
`NAME_min` of the figure NAME (`flopinj report --fail-if list TRACE` prints
the names). A text is a condition under which the test fails, as `flopinj report --fail-if` takes
it: `@pytest.mark.flop("ratio > 2.1")`. `record={"budget": "none"}` are options of `flopinj run`,
`report={"skip_steps": 2}` those of `flopinj report`. A limit that cannot be decided, since the
figure is not known, fails the test. A test that launched nothing, or could not be recorded, is
skipped with the reason.
"""

from __future__ import annotations

import pytest

import flopinj

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

_GATE = 1  # exit code of flopreduce where a condition holds, or cannot be decided


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "flop(*conditions, max=None, min=None, NAME_max=None, "
                                       "NAME_min=None, record={}, report={}): limits of the FLOP "
                                       "and other figures of the test, recorded by flopinj")


def conditions(marker: pytest.Mark) -> list[str]:
    """Under which the test fails.

    >>> conditions(pytest.mark.flop("ratio > 2.1", max=3e12, mfu_min=0.3).mark)
    ['ratio > 2.1', 'flop > 3000000000000', 'mfu < 0.3']
    """
    found = list(marker.args)
    for name, limit in marker.kwargs.items():
        if name in ("record", "report"):
            continue
        figure, _, side = name.rpartition("_")
        if side not in ("max", "min") or isinstance(limit, bool) or not isinstance(limit,
                                                                                   (int, float)):
            raise pytest.UsageError(f"pytest.mark.flop({name}={limit!r}): limits are max, min, "
                                    "NAME_max and NAME_min, each a number")
        number = int(limit) if float(limit).is_integer() else limit
        found.append(f"{figure or 'flop'} {'>' if side == 'max' else '<'} {number}")
    if not found:
        raise pytest.UsageError("pytest.mark.flop: without a limit; flop(max=3e12), say")
    return found


@pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator]
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    marker = item.get_closest_marker("flop")
    if marker is None:
        return (yield)
    limits = conditions(marker)
    with flopinj.record(**marker.kwargs.get("record", {})) as run:
        result = yield  # raises what the test raises
    _check(item, run, limits, marker.kwargs.get("report", {}))
    return result


def _check(item: pytest.Item, run: flopinj.Recording, limits: list[str],
           options: dict[str, Any]) -> None:
    try:
        traces = run.traces
    except flopinj.Error as error:
        pytest.skip(str(error))
    try:
        report = flopinj.load(traces, fail_if=limits, **options)
    except flopinj.Error as error:
        if error.exit_code != _GATE:
            raise
        item.add_report_section("call", "flopinj", flopinj.load(traces, **options).text())
        pytest.fail(str(error), pytrace=False)
    item.user_properties.append(("flop", report.flop))
