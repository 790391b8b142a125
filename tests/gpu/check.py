"""Compares what flopreduce says with theory, case by case. Each case becomes a row of the
report."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import cases

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
import report_tables  # noqa: E402


@dataclass
class Row:
    case: str
    precision: str
    theory: int | None  # FLOP of all launches
    executed: int | None  # None: not measured
    explanation: str
    ok: bool

    @property
    def ratio(self):
        return self.executed / self.theory if self.theory and self.executed is not None else None

    def as_dict(self):
        return {**asdict(self), "ratio": self.ratio}


def exact(case, precision, expected, executed):
    return Row(case, precision, expected, executed, "" if executed == expected else "NOT EXPLAINED",
               executed == expected)


def executed_by_precision(report, kind, name):
    """Of a phase or kernel, with integer operations; None where some launch has no count."""
    if not any(row[kind] == name and row["flop"] is not None for row in report[f"{kind}s"]):
        return None
    executed = {row["precision"]: report_tables.known(row) + report_tables.known(row, "op")
                for row in report[f"{kind}_precisions"] if row[kind] == name}
    return {precision: value for precision, value in executed.items() if value}


def ledger_rows(step, report, most_once=0):
    """`most_once`: so many launches may lack a count whose signature was launched that once. They
    are named."""
    ledger = report["ledger"][-1]
    without = ledger["unmeasured"] + ledger["dropped"]
    row = exact(f"{step}: launches without a count", "", 0, without)
    once = [
        s["kernel"] for s in report["signatures"]
        if s["flop_per_launch"] is None and s["launches"] == 1
    ]
    if 0 < without <= min(most_once, len(once)):
        row.explanation, row.ok = f"launched once: {', '.join(sorted(set(once)))}", True
    rows = [row]
    rows.append(
        Row(f"{step}: ledger balances", "", None, None,
            "" if ledger["balanced"] else "NOT EXPLAINED", bool(ledger["balanced"])))
    return rows


def check_cases(step, ran, report):
    """`report` has one phase per case, named as the case."""
    rows = ledger_rows(step, report)
    if not ran:
        rows.append(Row(f"{step}: no case ran", "", None, None, "NOT EXPLAINED", False))
    for case in ran:
        rows += _check_case(case, executed_by_precision(report, "phase", case["case"]))
    return rows


def _check_case(case, executed):
    expected = cases.merge(cases.expected(case))
    if executed is None:
        total = sum(expected.values()) * case["repeats"]
        return [Row(case["case"], "", total, None, "NOT MEASURED", False)]
    executed = cases.merge(executed)
    rows = []
    for precision in sorted(set(expected) | set(executed)) or [""]:
        want, got = expected.get(precision, 0), executed.get(precision, 0)
        # Launches may use several kernels, but each launch does the same work.
        each, rest = divmod(got, case["repeats"])
        why = cases.explain(case, precision, want, each) if rest == 0 else None
        rows.append(Row(case["case"], precision, want * case["repeats"], got,
                        "NOT EXPLAINED" if why is None else why, why is not None))
    return rows


def same_figures(step, windows, replay):
    """Windows and full replay must agree to the last digit, whatever theory says. Empty when
    `replay` is `windows`."""
    if windows is replay:
        return []
    executed = {(row.case, row.precision): row.executed for row in replay}
    return [
        exact(f"{step}: {row.case}, windows against replay", row.precision,
              executed.get((row.case, row.precision)), row.executed) for row in windows
        if row.precision
    ]


def check_trainer(step, expected, report):
    """The trainer's kernels execute what its README says: `expected` is the account that
    tests/integration/theory.py gives of the same run."""
    rows = ledger_rows(step, report)
    kernels = {kernel["kernel"]: kernel for kernel in report["kernels"]}
    for name in sorted(set(expected.kernel_flop) | set(kernels)):
        want, kernel = expected.kernel_flop.get(name, 0), kernels.get(name)
        flop = executed_by_precision(report, "kernel", name)
        got = None if flop is None else sum(flop.values())
        row = exact(f"{step}: {name}", ", ".join(flop or ()) or "fp32", want, got)
        launches = kernel["launches"] if kernel else 0
        if launches != expected.kernel_launches.get(name, 0):
            wanted = expected.kernel_launches.get(name, 0)
            row.explanation, row.ok = f"{launches} launches, not {wanted}", False
        rows.append(row)
    return rows


def check_timing(step, expected, report):
    """Mode timing: every launch of the trainer is there and has a time; nothing is counted."""
    kernels = {kernel["kernel"]: kernel for kernel in report["kernels"]}
    rows = check_timed(step, report)
    for name in sorted(set(expected.kernel_launches) | set(kernels)):
        want = expected.kernel_launches.get(name, 0)
        launches = kernels[name]["launches"] if name in kernels else 0
        rows.append(exact(f"{step}: launches of {name}", "", want, launches))
    return rows


def check_timed(step, report):
    """Every kernel has GPU time, and the ledger balances."""
    untimed = sorted(k["kernel"] for k in report["kernels"]
                     if not report_tables.known(k, "gpu_time_ns"))
    ledger = report["ledger"][-1]
    launches = ledger["launches"]
    return [
        Row(f"{step}: GPU time of all kernels", "", None, None,
            f"NOT EXPLAINED without: {', '.join(untimed)}" if untimed else "", not untimed),
        Row(f"{step}: launches recorded", "", None, None,
            f"{launches:,}" if launches else "NOT EXPLAINED", launches > 0),
        Row(f"{step}: ledger balances", "", None, None,
            "" if ledger["balanced"] else "NOT EXPLAINED", bool(ledger["balanced"]))]


# A convolution may be computed by an algorithm that needs fewer operations (Winograd, FFT), or on
# tiles and padded channels that need more. Beyond this factor nothing explains it.
NETWORK_MOST = 4.0
# Kernels that a library launches a single time, to set itself up: too rarely to be measured.
NETWORK_ONCE = 8
FEWER_OPERATIONS = ("winograd", "fft")


def check_network(step, formula, report):
    """`formula` has the matrix FLOP of all forward and all backward passes by the shapes of the
    layers."""
    rows = ledger_rows(step, report, NETWORK_ONCE)
    fewer = any(word in kernel["kernel"].lower() for kernel in report["kernels"]
                for word in FEWER_OPERATIONS)
    for phase in ("forward", "backward"):
        got = next((report_tables.exact(row, "matrix_flop") for row in report["phases"]
                    if row["phase"] == phase), None)
        row = exact(f"{step}: {phase}", "matrix", formula[phase], got)
        if got is not None and formula[phase] < got <= NETWORK_MOST * formula[phase]:
            row.explanation = "tiles and channels padded, multiply-adds of other kernels"
            row.ok = True
        elif got is not None and fewer and formula[phase] / NETWORK_MOST <= got < formula[phase]:
            row.explanation, row.ok = "Winograd or FFT convolution", True
        rows.append(row)
    return rows


def table(rows):
    header = ("case", "precision", "theory", "executed", "ratio", "")
    cells = [header]
    for r in rows:
        cells.append((r.case, r.precision, "" if r.theory is None else f"{r.theory:,}",
                      "not measured" if r.executed is None and r.theory is not None else
                      "" if r.executed is None else f"{r.executed:,}",
                      "" if r.ratio is None else f"{r.ratio:.6f}",
                      ("" if r.ok else "FAILED ") + r.explanation))
    width = [max(len(row[i]) for row in cells) for i in range(5)]
    lines = []
    for row in cells:
        left = [row[i].ljust(width[i]) if i < 2 else row[i].rjust(width[i]) for i in range(5)]
        lines.append("  ".join((*left, row[5])).rstrip())
    return "\n".join(lines) + "\n"
