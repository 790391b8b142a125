"""A stream's report against the oracle: figures by name, as the report has them and as they
truly are."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import as_gpu

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from report_tables import by, figure, known, lost_adds_up  # noqa: E402


def write_trace(build, gpu, path):
    with open(path, "wb") as out:
        subprocess.run([build / "test-bin/write_trace"], input="\n".join(gpu.lines) + "\n",
                       encoding="utf-8", stdout=out, check=True, timeout=60)


def report(build, trace, *options):
    command = [
        build / "bin/flopreduce", "--format", "json", "--peak", f"fp32={PEAK:g}", *options, trace
    ]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"flopreduce ended with {done.returncode}: {done.stderr.decode()}")
    made = json.loads(done.stdout)
    assert lost_adds_up(made) is not False, "where the peak went does not add up"
    return made


AGAIN = "checkpoints in a gradient that is differentiated again, and it is said"
THEORY = "theory: 3 x forward holds all of its matrix work"
OUTSIDE = "backward / forward: outside of the expected range"
ALL_COVERED = "utilization: 'all matrix FLOP covered' by formulas where they are not"
PEAK = 1e13  # FLOP/s, made up: without a peak nothing is said of utilization
PHASES = {
    "forward": "forward", "loss": "forward", "backward": "backward", "recompute": "recompute",
    "optimizer": "optimizer"
}


def truth(launches):
    """What the report has to say. The loss is part of the forward pass here: without ranges of
    the user's nothing tells them apart."""
    figures, phases, matrix = defaultdict(int), defaultdict(int), defaultdict(int)
    for launch in launches:
        phase = None if launch.hook else PHASES.get(launch.phase)
        if phase is None:
            continue
        phases[phase] += launch.work.flop
        macs = 2 * launch.work.multiply_adds
        matrix[phase] += macs
        if macs and launch.operator:
            if phase != "optimizer":  # not said by operator
                figures[f"operator {launch.operator}: {phase} matrix FLOP"] += macs
            figures[f"formula of {launch.formula}: {phase}"] += macs - 2 * launch.work.again
    for phase in set(PHASES.values()):
        figures[f"phase {phase}: FLOP"], figures[f"phase {phase}: matrix FLOP"] = phases[
            phase], matrix[phase]
    if matrix["forward"]:
        figures["backward / forward, matrix work"] = matrix["backward"] / matrix["forward"]
        if any(launch.operator for launch in launches):
            figures["backward / forward, expected"] = matrix["backward"] / matrix["forward"]
            figures[THEORY], figures[ALL_COVERED], figures[OUTSIDE] = True, False, False
    return dict(figures)


def said(found, names):
    """What it says, of the same figures; None where it says that it does not know. Products that
    it has and nothing is true of are figures too."""
    figures = {}
    for phase in set(PHASES.values()):
        parts = [row for row in found["phases"] if PHASES.get(row["phase"]) == phase]
        figures[f"phase {phase}: FLOP"] = sum(map(known, parts))
        figures[f"phase {phase}: matrix FLOP"] = sum(known(p, "matrix_flop") for p in parts)
    figures["backward / forward, matrix work"] = figure(found["figures"], "matrix_ratio")
    if not any(name.startswith("operator ") for name in names):
        return figures  # nothing names operators: it is not said which gradients there are
    least, most = expected(found)
    figures["backward / forward, expected"] = most if least == most else None
    figures[OUTSIDE] = any(row["verdict"] == "outside" for row in found["ratio"])
    methods = by(found, "utilization", "name")
    # Where some launches are unclear: at least so much.
    theory, forward = figure(methods["theory"]), names.get("phase forward: matrix FLOP", 0)
    figures[THEORY] = None if theory is None else theory >= 3 * forward
    lacking = any(
        figure(place, "formula_flop") is None and known(place, "matrix_flop")
        for place in found["operator_places"] if place["phase"] in ("forward", "loss", "backward"))
    figures[ALL_COVERED] = lacking and "all matrix FLOP covered" in methods["formula"]["basis"]
    for row in found["operator_passes"]:
        name = f"operator {row['operator']}: {row['pass']} matrix FLOP"
        figures[name] = figure(row, "matrix_flop")
    formulas = defaultdict(int)
    for row in found["operators"]:
        key = f"formula of {row['operator']}: {PHASES.get(row['phase'], row['phase'])}"
        flop = figure(row, "model_flop")
        formulas[key] = None if flop is None or formulas[key] is None else formulas[key] + flop
    figures |= {key: value for key, value in formulas.items() if key in names}
    return {key: value for key, value in figures.items() if key in names or value}


def expected(found):
    """The range in which backward / forward of matrix work is expected."""
    rows = by(found, "ratio")
    return [rows[f"expected of matrix work, {end}"]["value"] for end in ("least", "most")]


def slack(found, name):
    """By how much a figure of forward or backward may be more than what is said of it: the work of
    launches of which the report says that sequence numbers do not tell, or that they may be
    gradients."""
    parts = by(found, "phase_parts")
    unclear, gradients = parts["unclear"], parts["gradients"]
    if name == "phase backward: FLOP":
        return known(gradients)
    if name.endswith(("backward: matrix FLOP", ": backward matrix FLOP", ": backward")):
        return known(gradients, "matrix_flop")
    if name == "phase forward: FLOP":
        return known(unclear)
    if name == "phase forward: matrix FLOP" or name.endswith((": forward matrix FLOP",
                                                              ": forward")):
        return known(unclear, "matrix_flop")
    return 0


def is_said(value, right, more):
    """Whether a figure is as it truly is, or as much less as the report says that it may be."""
    if same(value, right):
        return True
    return more > 0 and None not in (value, right) and value <= right <= value + more


def _row(found, named):
    """The row of the table of operators that a figure "formula of OPERATOR: PHASE" is made of."""
    name, phase = named.removeprefix("formula of ").rsplit(": ", 1)
    return next((row for row in found["operators"]
                 if row["operator"] == name and PHASES.get(row["phase"], row["phase"]) == phase),
                None)


def _differentiated_again(found):
    return by(found, "sequence_numbers")["differentiated_again"]["launches"] > 0


def _is_node(name):
    return re.search(r"^operator \w+Backward: ", name) is not None


def _of_nodes(found):
    """Matrix work of backward whose forward operator is not known: the rows named after nodes."""
    return sum(known(row, "matrix_flop") for row in found["operator_passes"]
               if row["operator"].endswith("Backward") and row["pass"] == "backward")


def _is_backward(name):
    return name.startswith("operator ") and name.endswith(": backward matrix FLOP")


def unknown_work(gpu):
    """Backward's matrix work that the oracle names after nodes."""
    return sum(2 * launch.work.multiply_adds for launch in gpu.launches
               if launch.phase == "backward" and launch.operator.endswith("Backward"))


def mark(found, name, value, right):
    """What the report itself says of a figure that differs, in a few words; nothing where it is
    printed as if it were right. Each mark is a column of the report that says how the figure is to
    be read, and a text with the reason."""
    row = by(found, "ratio")["expected of matrix work, most"]
    assumed, basis = row.get("value_estimated", False), row["note"]
    if name == "backward / forward, expected" and value is None:
        least, most = expected(found)
        if most is not None and basis:
            if least <= right <= most or same(right, least) or same(right, most):
                return "a range, with its basis"
            outside = assumed and "outside of autograd" in basis
            return "a range, and assumed" if outside or (right < least and assumed) else None
    if name == "backward / forward, expected" and value is not None:
        # Nothing is assumed of a part without theory, or outside of autograd: less or more.
        part = "of forward's matrix work" in basis
        return "assumed, with its basis" if assumed and (right < value or part) else None
    if name == "backward / forward, matrix work" and "matrix_ratio_at_least" in found["figures"]:
        both = "matrix_ratio_at_most" in found["figures"]
        return "at least, with the reason" if right > value or both else None
    if name == "backward / forward, matrix work" and "matrix_ratio_at_most" in found["figures"]:
        return "at most, with the reason" if right < value else None
    if name.startswith("phase optimizer"):
        at_most = "flop_at_most" in by(found, "phases")["optimizer"]
        return "at most: it may hold launches of a closure" if at_most and right < value else None
    if name == "phase forward: FLOP" and "flop_at_least" in by(found, "phases")["forward"]:
        # Launches without numbers beside unclear ones, too.
        other = by(found, "phases").get("other")
        most = value + (known(other) if other else 0)
        return "at least: numbers do not tell all launches" if value < right <= most else None
    if name.startswith("phase backward") and "flop_at_least" in by(found, "phases")["backward"]:
        return "at least: gradients may be outside of autograd" if right > value else None
    if name.startswith(("phase backward", "phase recompute")):
        less = right < value if "backward" in name else right > value
        return AGAIN if less and "flop_at_most" in by(found, "phases")["backward"] else None
    if name.startswith("backward / forward") and value is None:
        reason = found["figures"].get("ratio_why") or basis
        return "not known, with the reason" if reason else None
    if name == THEORY:
        theory = by(found, "utilization", "name")["theory"]
        return "at least, with the reason" if "at least: " in theory["basis"] else None
    if _is_backward(name):
        if _differentiated_again(found) or _is_node(name) or 0 < right - value <= _of_nodes(found):
            return "no number tells some forward operators, and it is said"
        return None
    row = _row(found, name) if name.startswith("formula of ") else None
    if row is None or not row["cause"]:
        return None
    if value is None and figure(row, "formula_flop") is None:
        return "not known, with the cause"
    if row["cause"].startswith("complex numbers"):
        return "of real numbers, and said to be complex"
    if row["formula_partial"] and (value or 0) < right:
        return "at least: some calls have no formula, with the cause"
    if row["formula_at_most"] and value > right:
        return "at most: gradients are not told, with the cause"
    if "model_flop_at_least" in row and (value or 0) < right:
        return "at least: more was executed, with the cause"
    return None


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return a == b


# Kernels whose names say which gradient they compute, as most of cuDNN's do; and without that, as
# some of its are.
SAYING = ("convolution_input_gradient", "convolution_weight_gradient")
SILENT = ("convolution_first", "convolution_second")


def silence(gpu):
    """Kernels say no longer which gradient they compute; whether any did."""
    said_it = any(name in line for line in gpu.lines for name in SAYING)
    for saying, silent in zip(SAYING, SILENT):
        gpu.lines = [line.replace(saying, silent) for line in gpu.lines]
    return said_it


def differing(made, gpu):
    """[(figure, as reported, as it is, mark)] of one report."""
    true = truth(gpu.launches)
    reported = said(made, true)
    for name in sorted(true | reported):
        value, right = reported.get(name, 0), true.get(name, 0)
        if _is_backward(name) and not _is_node(name) and None not in (value, right):
            # Of nodes whose forward operator showed no number the oracle does not know it either.
            right = max(right, min(value, right + unknown_work(gpu)))
        if not is_said(value, right, slack(made, name)):
            yield name, value, right, mark(made, name, value, right)


def pair_formulas(made, gpu):
    """The same of backward's formulas by forward operator: at least the matrix work that the oracle
    counts, recomputation left out, and at most that and what formulas give to what is no matrix
    work, up to twelve operations for the oracle's one; or the report says that it is more or less.
    """
    matrix, other = defaultdict(int), defaultdict(int)
    for launch in gpu.launches:
        if launch.phase == "backward" and launch.operator and not launch.hook:
            macs = 2 * launch.work.multiply_adds
            matrix[launch.operator] += macs - 2 * launch.work.again
            other[launch.operator] += launch.work.flop - macs
    for row in made["operator_work"]:
        name, value = row["operator"], known(row, "backward_formula_flop")
        said_nothing = figure(row, "backward_formula_flop") is None and value == 0
        if _differentiated_again(made) or not matrix[name] or said_nothing:
            continue
        least = matrix[name] - _of_nodes(made)
        most = matrix[name] + 12 * other[name] + unknown_work(gpu)
        marked = {end for end in ("at_least", "at_most", "estimated")
                  if f"backward_formula_flop_{end}" in row}
        if value < least and not marked & {"at_least", "estimated"}:
            yield f"formula of backward of {name}", value, least, None
        if value > most and not marked & {"at_most", "estimated"}:
            yield f"formula of backward of {name}", value, most, None


def differences(build, gpu, trace):
    """The same of both reports of a stream; what is reported as not known is None, and differs too.
    What differs only where kernels' names do not tell gradients apart says so."""
    found = {}
    for note in ("", " (kernels do not say which gradient)"):
        write_trace(build, gpu, trace)
        made = report(build, trace)
        for figure, *values in [*differing(made, gpu), *pair_formulas(made, gpu)]:
            if figure not in found:
                found[figure + note] = values
        if not silence(gpu):
            break
    return [(figure, *values) for figure, values in found.items()]
