"""What the answers to the open questions delete of the library's code. Where a question has no
answer yet, nothing is said."""

import re
from dataclasses import dataclass
from typing import Callable

CHEAP_MS = 20  # a window's opening that a training step does not show
WINDOWS = ("window of instructions", "window of hardware")
COUNTED = "[10, 20, 30, 40]"  # what questions.py launches, of other_thread


@dataclass
class Decision:
    question: str                       # of findings.QUESTIONS
    claim: str
    holds: Callable[[dict], bool | None]  # by what was observed, items to values; None: not known
    if_so: str
    if_not: str


def _records_are_whole(observed):
    if any(item.startswith("error of cupti") for item in observed):
        return False
    wanted = [(f"{where}: records", f"{where}: launches") for where in WINDOWS]
    if not all(records in observed for records, _ in wanted):
        return None
    return all(observed[records] == observed[launches]
               and not observed[f"{records} without a time"]
               and not observed[f"{records} of a time before or after the launches"]
               for records, launches in wanted)


def _milliseconds(observed, program, *items):
    found = [observed.get(f"{program}: instructions, {item}") for item in items]
    return None if None in found else sum(found)


def _first_start(observed):
    """Of the program with the most modules: what the first instrumented window takes more than the
    second, and what of it an empty one before it takes."""
    for program in ("PyTorch, all modules loaded", "PyTorch"):
        first = _milliseconds(observed, program, "empty window: Start", "first window: Start",
                              "first window: work")
        second = _milliseconds(observed, program, "second window: Start", "second window: work")
        if first is not None and second is not None:
            return first - second, observed[f"{program}: instructions, empty window: Start"]
    return None


def _start_is_cheap(observed):
    cost = _first_start(observed)
    return None if cost is None else cost[0] <= CHEAP_MS


def _trial_tells(observed):
    cost = _first_start(observed)
    return None if cost is None or cost[0] <= CHEAP_MS else cost[1] >= cost[0] / 2


def _by_another_thread(*parts):
    def holds(observed):
        answers = [value for part in parts for item, value in observed.items()
                   if item.startswith(f"{part} by another thread, its context current")]
        return all(value == COUNTED for value in answers) if len(answers) == len(parts) else None
    return holds


def _closed_at_enter(observed):
    seen = [value for item, value in observed.items()
            if re.search(r"closed at ENTER of launch 7.*: values$", item)]
    return all(len(value.split()) == 4 for value in seen) if seen else None


def _cubin_says_it(observed):
    if not observed.get("kernels: compared"):
        return None
    return not any(observed[f"kernels: {name}"] for name in (
        "not in the cubin", "registers differ", "static shared memory differs"))


DECISIONS = (
    Decision("records_beside_ranges", "kernel records are whole beside ranges", _records_are_whole,
             "delete Edge::kernel_records_off and what switches it (range_profiler.cpp), and "
             "LaunchRecord::kNotBefore with the merger's look at it",
             "keep both; where records come and lie, delete the times of windowed launches"),
    Decision("cost_of_start", f"the first instrumented window under PyTorch costs at most "
             f"{CHEAP_MS} ms more than the next", _start_is_cheap,
             "delete counters/windows/trial.cpp and Context::trial",
             "keep the limit on the first instrumented window"),
    Decision("cost_of_start", "an empty window before it tells half of that cost or more",
             _trial_tells,
             "the trial's time is the estimate: delete the 100-fold slow-down that is assumed of "
             "an instrumented kernel before its first window (measuring_budget.h)",
             "delete counters/windows/trial.cpp: only a window with launches tells what it costs"),
    Decision("other_thread", "another thread may enable and disable",
             _by_another_thread("enable", "enable_again", "disable"),
             "delete Leases::by_planner_, release_here() and the state kDueHere",
             "delete Leases::enable(), ask() and the states kReleased and kAsked: the thread that "
             "launches enables"),
    Decision("other_thread", "another thread may stop a window", _by_another_thread("stop"),
             "delete Windows::closes_outside_ and Closer",
             "delete Windows::close_from_outside() and close_old(): the thread that launches "
             "closes"),
    Decision("close_at_enter", "a window may be closed at the ENTER of the launch behind it",
             _closed_at_enter, "nothing is to be done: it is",
             "close a window at the EXIT of its last launch, in Windows::exit()"),
    Decision("registers", "cubins say registers and static shared memory as the driver does",
             _cubin_says_it,
             "delete Functions::ask_driver() but for parameters, and cuFuncGetAttribute: "
             "collector/identity/cubin.cpp reads both",
             "keep cuFuncGetAttribute: findings.md has the kernels that differ"),
)


def lines(observed_of):
    """`observed_of`: question to observations (item, value, unit)."""
    said = []
    for decision in DECISIONS:
        seen = {item: value for item, value, _ in observed_of.get(decision.question, ())}
        holds = decision.holds(seen) if seen else None
        if holds is not None:
            said.append(f"{decision.claim}: {'yes' if holds else 'no'}; "
                        f"{decision.if_so if holds else decision.if_not}")
    return said
