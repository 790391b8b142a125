#!/usr/bin/env python3
"""Evidence that is hidden makes no figure wrong: a report of a stream without some of its sizes,
peaks, times, counters or names holds for the report with all of them. In every figure of every
table what is printed without a mark is equal, and bounds are on their side. Of estimates, and of
figures that are not known, nothing is asked.

hidden_test.py BUILD [STREAM...]"""

import functools
import random
import re
import sys
import unittest
from collections import Counter
from dataclasses import dataclass
from typing import Callable

sys.dont_write_bytecode = True
import recorded  # noqa: E402

NAMES = ["gpt", "gpt-checkpoint", "cnn", "lora", "hf_llama_autocast", "mixture_of_experts", "lstm",
         "mlp_adam_foreach", "annotated_grpo", "compile_gpt", "cnn_same_padding", "random_7704"]
# Near to what kernels of the streams reach, so that work is no small part of the time.
PEAKS = ("--peak", "fp32=2e11", "--peak", "tensor_bf16=4e11")
PRODUCTS = re.compile(r"aten::(linear|conv\dd|convolution\w*|b?mm|addmm|baddbmm|matmul|lstm|"
                      r"\w*scaled_dot_product\w*attention\w*)$")


# --- lines of a stream: write_trace.cpp
def on_tensor_cores(lines, draw):
    """Of a half of the kernels with products these run on tensor cores."""
    yield lines[0].replace("device", "tensor_device")
    yield "tensor_groups"
    for line in lines[1:]:
        word, *fields = line.split("\t")
        if word == "kernel":
            kernel, additions, multiply_adds, name = fields
            tensor = int(multiply_adds) > 0 and draw.random() < 0.5
            yield "\t".join((word, kernel, additions, "0" if tensor else multiply_adds, name))
            yield f"screened\t{kernel}\t{int(tensor)}"
            yield f"tensor\t{kernel}\t{multiply_adds if tensor else 0}"
        else:
            yield line


def sizes(share):
    """Of so many of the operators that multiply matrices."""

    def hide(lines, draw):
        hidden = {}
        for line in lines:
            text = line.split("\t")[-1]
            if PRODUCTS.match(text.split(",", 1)[0]) and line.startswith("push"):
                if hidden.setdefault(text, draw.random() < share):
                    line = re.sub(r", sizes = \[.*\](?=$|, [a-z_]+ = )", "", line)
            yield line

    return hide


def times(share, of_kernels):
    """Of so many launches, or of all launches of so many kernels."""

    def hide(lines, draw):
        hidden = {}
        for line in lines:
            if line.startswith("run\t"):
                drawn = draw.random() < share
                if hidden.setdefault(line.split("\t")[2], drawn) if of_kernels else drawn:
                    line += "\t?"
            yield line

    return hide


def counters(share, words):
    """Samples of so many kernels: of the groups whose lines begin with these words."""

    def hide(lines, draw):
        hidden = {}
        for line in lines:
            word, *fields = line.split("\t")
            if word in words and hidden.setdefault(fields[0], draw.random() < share):
                if word != "kernel":
                    continue
                line = "\t".join((word, fields[0], "-", "-", *fields[3:]))
            yield line

    return hide


def no_groups(lines, _):
    """Nobody asked for counters of tensor cores."""
    return (line for line in lines
            if line.split("\t")[0] not in ("tensor_groups", "screened", "tensor"))


def names(share):
    """Of so many of the ranges around which no other is open on their thread, and all inside."""

    def hide(lines, draw):
        depth, hides = Counter(), {}
        for line in lines:
            word, *fields = line.split("\t")
            if word == "push":
                if depth[fields[0]] == 0:
                    hides[fields[0]] = draw.random() < share
                depth[fields[0]] += 1
            if word not in ("push", "pop") or not hides[fields[0]]:
                yield line
            if word == "pop":
                depth[fields[0]] -= 1

    return hide


# --- what is compared
@dataclass(frozen=True)
class Way:
    hide: Callable
    options: tuple = PEAKS
    but: str = ""  # tables, or rows and figures of one
    small: float = 1e-3  # see OF_MODEL


BY_NAME = ("ranges|ranges_exclusive|utilization_ranges|stacks|paths|rules_used|rules|first_layers|"
           "ratio first layer.*")
# What rests on names is of launches that have names: partial_test.py. So are other FLOP.
OF_NAMES = (BY_NAME + "|phases|phase_.*|ratio .*|layers|layer_passes|operator_work|operator_passes|"
            "rank_phases|flop_over_time|lost_phases|figures .*ratio|lost other_flop|"
            "utilization (theory|one|batch)")
# Of kernels without a count, or without peaks of all of them, by what it is.
UNCOUNTED = "lost uncounted"
TENSOR = ("kernel", "screened", "tensor")
WAYS = {
    "sizes of a few": Way(sizes(0.2), but=BY_NAME),
    "sizes of most": Way(sizes(0.6), but=BY_NAME),
    "sizes of all": Way(sizes(1), but=BY_NAME),
    "peaks": Way(lambda lines, _: lines, (), but=UNCOUNTED),
    "a peak": Way(lambda lines, _: lines, PEAKS[:2], but=UNCOUNTED),
    "times of launches": Way(times(0.2, False)),
    "times of kernels": Way(times(0.3, True)),
    "all times": Way(times(1, False)),
    "all counts of a few kernels": Way(counters(0.2, TENSOR), but=UNCOUNTED),
    "all counts of most kernels": Way(counters(0.8, TENSOR), but=UNCOUNTED),
    "all counts": Way(counters(1, TENSOR), but=UNCOUNTED),
    "tensor counts of kernels": Way(counters(0.4, TENSOR[2:]), but=UNCOUNTED),
    "tensor counts and screening of kernels": Way(counters(0.4, TENSOR[1:]), but=UNCOUNTED),
    "tensor counts and screening": Way(counters(1, TENSOR[1:]), but=UNCOUNTED),
    "groups for tensor cores": Way(no_groups, but=UNCOUNTED),
    "names": Way(names(0.2), but=OF_NAMES, small=5e-3),
    "most names": Way(names(0.7), but=OF_NAMES, small=5e-3),
}
# Columns that tell the rows of a table apart, where it has them.
KEYS = ("phase", "precision", "part", "figure", "name", "line", "layer", "pass", "operator",
        "range", "kernel", "mangled", "stable_hash", "device", "roof", "what", "rule", "process",
        "trace", "ordinal", "begin_ns", "number", "metric", "before")
# Tables of the evidence itself.
EVIDENCE = {"samples", "sequence_numbers", "coverage_growth", "unmeasured", "estimates", "overhead",
            "ledger", "devices", "largest_gaps", "operators", "operator_places"}
# Columns about it, and not about the program.
ABOUT = re.compile(r"coverage|launches|missing|unmeasured|unknown|basis|estimated|_low$|_high$|"
                   r"place$|samples|windows|calls|counted|seen_share|doubtful|left_out|_why$")


def of_range(row):
    """An expected ratio is from one end of a range to the other."""
    row = dict(row)
    if row.get("figure", "").startswith("expected"):
        row["value_at_" + row["figure"].rsplit(" ", 1)[1]] = row.pop("value")
    elif row.get("expected_ratio_assumed"):
        row["expected_ratio_estimated"] = True
    elif row.get("expected_ratio") != row.get("expected_ratio_low"):
        row["expected_ratio_at_most"] = row.pop("expected_ratio")
    return row


@functools.cache
def is_compared(column):
    return not (ABOUT.search(column) or column in KEYS or re.search("_at_(least|most)$", column))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Figures of the model have no mark where no more than 1 % of all multiply-adds is of work without a
# formula that is perhaps elementwise. In these streams it comes to less than this.
OF_MODEL = re.compile("formula_flop|model_flop|mfu|^flop$")


def parts_of(rows):
    """{(table, phase): nanoseconds} of the tables of where the peak went."""
    sums = {}
    for (table, _), row in rows.items():
        if table.startswith("lost"):
            key = table, row.get("phase")
            sums[key] = sums.get(key, 0) + (row.get("ns") or 0)
    return sums


def differing(whole, part, but, small):
    """Of one row: (how many figures were compared, [what is printed and is wrong]). `small`: column
    to what a difference may come to."""
    compared, wrong = 0, []
    part = of_range(part)
    for key, truth in whole.items():
        if not is_compared(key) or not is_number(truth) or but(key):
            continue
        if f"{key}_estimated" in whole or part.get(f"{key}_estimated"):
            continue
        # Parts of a whole in whole nanoseconds, and shares of some ten thousand.
        slack = max({"ns": 1, "share": 1e-4}.get(key, 1e-9 * abs(truth)), small(key, truth))
        said, least, most = (part.get(k) for k in (key, f"{key}_at_least", f"{key}_at_most"))
        compared += sum(value is not None for value in (said, least, most))
        if said is not None and abs(said - truth) > slack:
            wrong.append(f"{key} = {said} of {truth}")
        if least is not None and least > truth + slack:
            wrong.append(f"{key} >= {least} of {truth}")
        if most is not None and most < truth - slack:
            wrong.append(f"{key} <= {most} of {truth}")
    return compared, wrong


def rows_of(report):
    """{(table, what tells the row apart): row}"""
    rows, twice = {("figures", ()): report["figures"]}, set()
    for table, list_ in report.items():
        if table in EVIDENCE or not isinstance(list_, list):
            continue
        for row in list_:
            key = table, tuple((k, row[k]) for k in KEYS if k in row)
            if key in rows:
                twice.add(key)
            rows[key] = row
    return {key: row for key, row in rows.items() if key not in twice}


@functools.cache
def is_left_out(but, table, words):
    return any(re.fullmatch(but, text) for text in (table, *(f"{table} {w}" for w in words)))


def left_out(way, key, column=None):
    table, row = key
    words = (column, ) if column else tuple(value for _, value in row[:1])
    return is_left_out(way.but, table, words)


class Hidden(recorded.Streams):

    def check(self, stream, ways):
        lines = list(on_tensor_cores(self.lines_of(stream), random.Random(stream)))
        whole = rows_of(self.report(lines, *PEAKS))
        sums = parts_of(whole)

        def small(way, key, row, column, truth):
            if key[0].startswith("lost"):
                whole = {"ns": sums[key[0], row.get("phase")], "share": 1}
                return way.small * whole.get(column, 0)
            of_model = key[0] in ("figures", "utilization") or "formula" in column
            asks = OF_MODEL.search(column) or column.startswith("utilization") or (
                column == "least_ns")
            return way.small * abs(truth) if of_model and asks else 0

        for name in ways:
            way = WAYS[name]
            with self.subTest(stream=stream, hidden=name):
                hidden = list(way.hide(lines, random.Random(f"{stream} {name}")))
                part = rows_of(self.report(hidden, *way.options))
                compared, wrong = 0, []
                for key, row in whole.items():
                    if key not in part or left_out(way, key):
                        continue
                    its = differing(row, part[key], lambda column: left_out(way, key, column),
                                    lambda column, truth: small(way, key, row, column, truth))
                    compared += its[0]
                    wrong += [f"{key[0]} {dict(key[1])}: {text}" for text in its[1]]
                self.assertGreater(compared, 50)
                self.assertFalse(wrong, "\n".join(wrong[:20]))

    def test_what_is_printed_holds(self):
        for stream in self.streams or NAMES:
            self.check(stream, WAYS)


if __name__ == "__main__":
    recorded.main(Hidden)
