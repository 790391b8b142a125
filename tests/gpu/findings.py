"""The probes' observations as Markdown: what was asked, what was seen. It draws no conclusion that
the figures do not hold."""

import json

import answers

# The questions on which most code depends (answers.py): questions.py asks each in these ways.
OPEN = {
    "records_beside_ranges": ((),),
    "other_thread": (("enable",), ("enable_again",), ("start",), ("stop",), ("disable",)),
    "cost_of_start": (("modules", "1"), ("modules", "50"), ("torch",), ("torch_eager",)),
    "registers": ((),),  # of the files that steps.py finds
}
# Probe: the question it answers. They run in this order, FIRST before all other steps.
# BESIDE_TORCH is a program of PyTorch (beside_torch.py), which takes long to start.
BESIDE_TORCH = "beside_torch"
QUESTIONS = {
    "counters": "Can counters be read on this machine?",
    "in_callback": "Does a window work that is opened and closed inside launch callbacks?",
    "close_at_enter": "And one that is closed at the ENTER of the launch behind it?",
    "records_beside_ranges": "Are kernel records whole beside range profiling?",
    "other_thread": "Which part of a window's life may a thread have that launches nothing?",
    "cost_of_start": "What does the first instrumented window cost, under PyTorch too?",
    "registers": "Do cubins say registers and static shared memory as cuFuncGetAttribute does?",
    "waiting_in_flight": "Does a launch in a window wait for unfinished work of other streams?",
    "user_range_in_flight": "Do the edges of a user range?",
    "launch_limits": "Which launches fail inside a window that work outside?",
    "handed_registers": "Do kernels run in a window whose warps hand registers to others?",
    "launch_kinds": "What do windows hold of clusters and of programmatic launches?",
    "tensor_map": "Which words of a tensor map hold its address?",
    "memory_in_window": "Which memory operations and other calls become ranges of a window?",
    "thread": "Are launches of another thread in a window than the one that enabled it?",
    "sixteen_threads": "How many activity buffers do many threads hold, and are records lost?",
    "cost": "What do the range profiler's calls, windows and patched kernels cost?",
    "enable_and_disable": "What do Enable and Disable cost, and launches between them?",
    "memory": "Does a window of one pass save and restore memory, and do its kernels run once?",
    "memory_held": "How much device memory does the range profiler hold?",
    "order": "Are ranges in the order of the launch calls, also beyond a window's capacity?",
    "unlocked": "And from several threads without a lock?",
    "stop_at_exit": "Can a handler of exit() close a window?",
    "decode_without_stop": "Can a window be read without Stop?",
    "beside_capture": "What becomes of a capture while a window opens and closes beside it?",
    "capture_first_launch": "May the driver be asked about a kernel whose launch is captured?",
    "captured_nodes": "Does CUPTI report the node that a call makes under capture, inside of it?",
    "handles_given": "Do callbacks show the call that gave the handle which a launch has?",
    "library_kernel": "What do driver queries answer for a CUkernel passed as a CUfunction?",
    "module_in_window": "Are kernels counted whose module is loaded inside a window?",
    "two_contexts": "Can two contexts of one device be enabled at once?",
    "green_context": "What do windows hold of launches in a green context?",
    BESIDE_TORCH: "Do torch.profiler and a client that shares CUPTI both have their records?",
    "graph": "Is the launch of a graph one range, one per kernel, or none?",
    "graph_alone": "What does a window around a single graph launch hold, and in which order?",
    "large_graph": "Has every kernel of large graphs a record with valid times?",
    "user_range": "Are launches in a user range serialised?",
    "callback": "Is cuFuncGetParamInfo safe in a callback, and what do callbacks cost?",
    "finalize_at_exit": "Does a program run on after cuptiFinalize at the EXIT of a call, and can "
                        "CUPTI be subscribed to again?",
    "overlap": "Which work do the hardware counters share, and how do packed halves count?",
    "sparsity": "What do the tensor metrics count for sparse products?",
}
FIRST = ("counters", "in_callback", *OPEN, "launch_limits")
# These read no counters.
WITHOUT_COUNTERS = {"sixteen_threads", "capture_first_launch", "captured_nodes", "handles_given",
                    "library_kernel", "large_graph", "callback", "tensor_map", "registers",
                    BESIDE_TORCH}


def overhead(results):
    """Rows of a table: the program of each run, its milliseconds per step, the ratio to plain."""
    plain = results[0][1] and results[0][1]["milliseconds"]
    lines = [
        "| run | median ms per step | fastest | slowest | ratio |", "|---|---:|---:|---:|---:|"
    ]
    for name, figures in results:
        if figures is None:
            lines.append(f"| {name} | did not run | | | |")
            continue
        ratio = f"{figures['milliseconds'] / plain:.3f}" if plain else ""
        cells = [f"{figures[key]:.4f}" for key in ("milliseconds", "fastest", "slowest")]
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio} |")
    return lines


def observations(output):
    """Item, value and unit of every line of JSON that a probe wrote."""
    rows = []
    for line in output.splitlines():
        if line.startswith('{"item"'):
            try:
                row = json.loads(line)
                rows.append((row["item"], row["value"], row["unit"]))
            except (ValueError, KeyError):
                rows.append(("unreadable line", line, ""))
    return rows


def what_answers_delete(probes):
    """Lines; `probes` as in markdown()."""
    return answers.lines({name: observations(output) for name, (_, output) in probes.items()})


def _cell(value):
    return f"{value}".replace("|", "\\|")


def markdown(about, probes, tables=None):
    """`about`: the machine, names to values. `probes`: name to (how it ended, its output).
    `tables`: heading to lines."""
    lines = [
        "# Hardware findings", "", "Observed by tests/gpu/run; every figure is as it was read.", ""
    ]
    lines += [f"- {name}: {value}" for name, value in about.items() if value is not None]
    decided = what_answers_delete(probes)
    if decided:
        lines += ["", "## What the answers delete", "", *(f"- {line}" for line in decided)]
    for name, question in QUESTIONS.items():
        if name not in probes:
            continue
        ended, output = probes[name]
        rows = observations(output)
        lines += ["", f"## {question}", "", f"Probe `{name}`: {ended}.", ""]
        if rows:
            lines += ["| observed | value |", "|---|---:|"]
            lines += [f"| {_cell(item)} | {_cell(value)}{' ' + unit if unit else ''} |"
                      for item, value, unit in rows]
        else:
            lines.append("Nothing was observed: the question stays open.")
    for heading, table in (tables or {}).items():
        lines += ["", f"## {heading}", "", *table]
    return "\n".join(lines) + "\n"
