"""Makes of a stream that was recorded on the CPU the one that the same program gives on a GPU,
as lines for write_trace, and says what each launch in it truly is. Four steps, each of its own:

1. Names: operators that only the CPU has are exchanged for CUDA's, by their schemas (EXCHANGED).
2. Kernels: each operator that does work starts one kernel or more, inside its own range. 3.
Threads: autograd's engine runs backward on a thread of its own, pt_autograd_0, where none of the
main thread's ranges is open. 4. Sequence numbers: each thread has its own, from 0. On the CPU
all come from one counter; what was made while the engine ran belongs to autograd's thread.

The phase of a launch is that of the recording program's notes; what backward it belongs to is
told by the counter itself: the node that got a number was made by the last operator that showed
it."""

import re
from copy import copy
from dataclasses import dataclass, replace

import oracle
import stream
from gpu_names import ATTENTION, EXCHANGED, WHOLE, own_kernel, starts_kernels, transparent
from sequence_numbers import SequenceNumbers
from stream import Note, Range

STEP, STEP_WITHOUT_NAMES = "flopinj step", "flopinj step without names"
MAIN, AUTOGRAD = "python", "pt_autograd_0"

@dataclass(frozen=True)
class Launch:
    """One kernel, and what it truly is."""
    work: oracle.Work
    phase: str
    operator: str  # the function that forward called, or that backward belongs to
    formula: str  # the outermost function around it that multiplies matrices
    hook: bool = False  # a product of a hook, which is in no phase of training


def named(function, sizes, range_):
    """A range of that name with the fields of the CPU's."""
    text = function
    for field in ("seq", "op_id"):
        if range_.field(field) is not None:
            text += f", {field} = {range_.field(field)}"
    return f"{text}, sizes = {sizes}"


# What flopinj.torch's observer writes of an operator beside emit_nvtx's fields, as far as streams
# have it: python/flopinj/torch/observer.cpp.
SETTINGS = ("kernel_size", "stride", "padding", "dilation", "transposed")


def settings_of(function, op):
    """The operator's settings, and its type where that is complex."""
    text, arguments = "", op.get("args", {})
    if arguments and re.search("conv|pool", function):
        text = "".join(f", {key} = {arguments[key]}" for key in SETTINGS
                       if arguments.get(key) is not None)
    if op.get("type", "").startswith("c10::complex"):
        text += ", types = [ComplexFloat]"
    return text


def swapped(sizes):
    return [sizes[0], sizes[2], sizes[1], *sizes[3:]] if len(sizes) >= 3 else sizes


def is_operator(range_):
    """Of the dispatcher. It has no results where an exception ended it: checkpointing stops what
    it computes again so."""
    return range_.op is not None or range_.function.startswith("aten::")


class Gpu:
    def __init__(self, header, events):
        self.settings = {}  # by place among the lines: what flopinj.torch's observer adds to them
        self.lines, self.launches, self.kernels = ["device\tmade of a recording"], [], {}
        self.phases, self.engine_depth, self.functions = [], 0, []
        self.numbers, self.engine_runs = SequenceNumbers(events), 0
        self.recorded_on, self.others = 1, set()
        self.made_by, self.hooks = {}, 0
        self.steps, self.unnamed = {}, False  # of flopinj.torch that are open
        self.said = {}  # by thread: of the ranges that are open, which the stream has
        self.dropped, self.node = set(), None  # numbers of dropout's nodes; the one that runs
        self.ran, self.outside = set(), []  # numbers of nodes that ran; launches outside of phases
        self.lines += [f"thread\t1\t{MAIN}", f"thread\t2\t{AUTOGRAD}"]
        self.header = header
        order = stream.trees(events)
        for self.recorded_on, item in order:
            if self.recorded_on > 1 and self.thread not in self.others:
                self.lines.append(f"thread\t{self.thread}\tpython")
                self.others.add(self.thread)
            self.emit(item)
        self.lines += [f"end\t{id_}" for id_ in self.steps]
        # What backward differentiates is part of the loss, such as its scaling.
        for at, number in self.outside:
            launch = self.launches[at]
            if (launch.phase != "unnamed" and number in self.ran and
                    self.made_by[number] == launch.operator):
                self.launches[at] = replace(launch, phase="loss")

    def observed(self):
        """The same with the names of flopinj.torch's observer; None where these have no settings.
        """
        other = copy(self)
        other.lines = [line + self.settings.get(n, "") for n, line in enumerate(self.lines)]
        return other if self.settings else None

    @staticmethod
    def own(range_):
        """The program's own operator, by what others inside of it do."""
        return not range_.function.startswith("aten::") and starts_kernels(range_)

    @staticmethod
    def called(range_):
        """The function that a call is known by, under CUDA's name. A function of the user's
        (torch.autograd.Function, torch.library) is known by the operator inside that does the
        work, if it is one; else it is none of the dispatcher's: None."""
        if is_operator(range_) and not Gpu.own(range_):
            if range_.function in ATTENTION:
                half, single, _ = ATTENTION[range_.function]
                return (half if Gpu.half(range_) else single)[0]
            return EXCHANGED.get(range_.function, (range_.function, ))[0]
        found = {
            r.function
            for r in range_.ranges() if is_operator(r) and (own_kernel(r) or starts_kernels(r))
        }
        return found.pop() if len(found) == 1 else None

    # --- emission
    @property
    def thread(self):
        if self.recorded_on > 1:
            return self.recorded_on + 1
        return 2 if self.engine_depth else 1

    def emit(self, item, outer=None):
        if isinstance(item, Note):
            self.note(item.text)
        elif isinstance(item, Range):
            self.range(item, outer)
        elif item.event[0] in ("start", "end"):
            self.step(*item.event)

    def step(self, word, _, id_, name=None, *rest):
        """flopinj.torch's ranges of steps. In one without names its observer names nothing, and
        nothing is known of it."""
        if word == "start" and name in (STEP, STEP_WITHOUT_NAMES):
            self.steps[id_] = name
            self.lines.append(f"start\t{id_}\t-\t{name}")
        elif word == "end" and self.steps.pop(id_, None):
            self.lines.append(f"end\t{id_}")
        self.unnamed = STEP_WITHOUT_NAMES in self.steps.values()

    def note(self, text):
        word, _, rest = text.partition(" ")
        if word == "phase":
            if rest == "end":
                self.phases.pop()
            else:
                self.phases.append(rest)
        elif word == "launch":  # of a stream that is made up
            kernel, macs, additions = rest.split()
            self.run(oracle.Work(kernel, int(macs), int(additions)), "")
        elif word == "hook":
            self.hooks += -1 if rest == "end" else 1
        elif word == "engine":
            self.engine_depth += -1 if rest.startswith("end") else 1
            if not rest.startswith("end") and self.engine_depth == 1:
                self.engine_runs += 1

    def renumbered(self, name, range_):
        sequence = range_.sequence
        if sequence is None:
            return name
        if is_operator(range_):
            run = self.engine_runs - 1 if self.engine_depth else None
            number = self.numbers.shown_by_operator(sequence, run)
        else:
            number = self.numbers.of_node(sequence)
        return name.replace(f", seq = {sequence}", f", seq = {number}", 1)

    def push(self, range_, name=None):
        text = name or range_.name
        settings = ""
        if is_operator(range_):
            self.functions.append(text.split(", ", 1)[0])
            settings = range_.op and settings_of(self.functions[-1], range_.op)
        text = self.renumbered(text, range_)
        self.said.setdefault(self.thread, []).append(not self.unnamed)
        if not self.unnamed:
            if settings:
                self.settings[len(self.lines)] = settings
            self.lines.append(f"push\t{self.thread}\t{range_.domain}\t{text}")

    def pop(self, range_):
        if is_operator(range_):
            self.functions.pop()
        if self.said[self.thread].pop():
            self.lines.append(f"pop\t{self.thread}\t{range_.domain}")

    def run(self, work, operator):
        if work not in self.kernels:
            kernel = self.kernels[work] = len(self.kernels) + 1
            self.lines.append(
                f"kernel\t{kernel}\t{work.additions}\t{work.multiply_adds}\t{work.kernel}_kernel")
        kernel = self.kernels[work]
        self.lines.append(f"run\t{self.thread}\t{kernel}\t{100 + work.flop // 100}")
        self.launches.append(
            Launch(work, "unnamed" if self.unnamed else self.phase, operator,
                   next((f for f in self.functions if not transparent(f)), ""), self.hooks > 0))

    # --- 1 and 2: names and kernels
    def range(self, range_, outer):
        """`outer`: the function that this is a part of, or ("node", number)."""
        function = range_.function
        forward = outer is None or self.phase == "recompute"
        if range_.sequence is not None and (is_operator(range_) or forward):
            # What backward itself calls is no operator of the forward pass.
            called = None if self.phase == "backward" else self.called(range_)
            self.made_by[range_.sequence] = outer if isinstance(outer, str) else called
        operator, outer_function = self.called(range_), outer
        if isinstance(outer, str):
            operator = outer
        elif outer is not None and self.phase != "recompute":
            operator = self.made_by.get(outer[1]) or f"{outer[2]}"
        elif is_operator(range_):
            outer_function = None
        if function.startswith("autograd::engine::evaluate_function"):
            node = next((r for r in range_.ranges() if r.sequence is not None), None)
            self.node = node and node.sequence
            self.ran.add(self.node)
            name = function.removeprefix("autograd::engine::evaluate_function: ")
            outer_function = ("node", node.sequence if node else None, name.rstrip("0123456789"))
        if range_.op is None:
            self.push(range_, self.exchanged_node(range_))
            # An operator that an exception ended did what ran inside of it.
            inner = operator if is_operator(range_) and outer_function is None else outer_function
            for item in range_.inside:
                self.emit(item, inner)
            self.pop(range_)
            return
        self.operator(range_, outer_function, operator)

    @property
    def phase(self):
        return self.phases[-1] if self.phases else "other"

    def exchanged_node(self, range_):
        function = range_.function
        if "MulBackward0" in function and self.node in self.dropped:
            return range_.name.replace("MulBackward0", "NativeDropoutBackward0")
        for name, (new, _) in EXCHANGED.items():
            if not name.startswith("aten::") and name in function:
                return range_.name.replace(name, new)
        for name, (half, single, _) in ATTENTION.items():
            if not name.startswith("aten::") and name in function:
                return range_.name.replace(name, (half if self.half(range_) else single)[0])
        return range_.name

    @staticmethod
    def half(range_):
        """Whether it works on 16 bits; an autograd node does what the operators inside of it do."""
        todo = [range_]
        while todo:
            r = todo.pop()
            if r.op is not None and r.function.startswith("aten::_scaled_dot_product"):
                return r.op["type"] in ("c10::BFloat16", "c10::Half")
            todo += r.ranges()
        return False

    def operator(self, range_, outer, operator):
        function, sizes = range_.function, range_.sizes or []
        name = function.removeprefix("aten::")
        inner = list(range_.operators())

        def run(work):
            if not self.phases and range_.sequence is not None:
                self.outside.append((len(self.launches), range_.sequence))
            self.run(work, operator)

        if function == "aten::_convolution":
            self.convolution(range_, run)
        elif name == "convolution_backward":
            self.push(range_)
            for work in oracle.of_operator(function, sizes, range_.op):
                if work.kernel == "sum":
                    shape = [0, *range(2, len(sizes[0]))]
                    bias = replace(range_,
                                   name=f"aten::sum, sizes = {[sizes[0], shape and [], [], []]}")
                    self.push(bias)
                    run(work)
                    self.pop(bias)
                else:
                    run(work)
            self.pop(range_)
        elif name == "addmm" and any(r.function == "aten::_values" for r in inner):
            self.push(range_)
            run(oracle.sparse(inner, sizes))
            self.pop(range_)
        elif name == "dropout" and any(r.function == "aten::bernoulli_" for r in inner):
            self.dropout(range_, run)
        elif function in ATTENTION:
            half, single, operands = ATTENTION[function]
            outside, arguments, inside, inner_arguments = half if self.half(range_) else single
            mine, turned = sizes[:operands], [swapped(s) for s in sizes[:operands]]
            outside_range = replace(
                range_, name=named(outside, mine + [[]] * (arguments - operands), range_))
            inside_range = Range(
                f"{inside}, sizes = {turned + [[]] * (inner_arguments - operands)}", range_.op)
            self.push(outside_range)
            self.push(inside_range)
            for work in oracle.of_operator(function, sizes, range_.op):
                run(work)
            self.pop(inside_range)
            self.pop(outside_range)
        else:
            new, arguments = EXCHANGED.get(function, (None, None))
            if function == "aten::mul" and isinstance(
                    outer, tuple) and outer[1] in self.dropped and self.phase == "backward":
                new, arguments = "aten::native_dropout_backward", [0, 1, None]
            text = new and named(new, [[] if a is None else sizes[a] for a in arguments], range_)
            self.push(range_, text)
            whole = name in WHOLE or name.startswith(("_foreach_", "_fused_"))
            inside = {r.function for r in inner}
            # Of a product that torch.vmap makes one of all samples, that one is done.
            other = {function, "aten::_sparse_addmm", "aten::matmul", "aten::mm"}
            if whole and not inside & other:
                for work in oracle.of_operator(function, sizes, range_.op):
                    run(work)
            else:
                for item in range_.inside:
                    self.emit(
                        item,
                        outer if isinstance(outer, tuple) or transparent(function) else operator)
                if function.startswith("aten::") and own_kernel(range_):
                    for work in oracle.of_operator(function, sizes, range_.op):
                        run(work)
            self.pop(range_)

    def dropout(self, range_, run):
        """A mask is drawn and multiplied with; a GPU has one kernel for that, and a node of its
        own."""
        product = next(r for r in range_.ranges() if r.function == "aten::mul")
        if product.sequence is not None:
            self.dropped.add(product.sequence)
            self.made_by[product.sequence] = self.made_by.get(range_.sequence) or range_.function
        inner = replace(product, name=named("aten::native_dropout", [range_.sizes[0], [], []],
                                            product))
        self.push(range_)
        self.push(inner)
        run(oracle.Work("native_dropout", 0, oracle.elements(product.op["out"])))
        self.pop(inner)
        self.pop(range_)

    def convolution(self, range_, run):
        """The library's convolution, and an operator that adds the bias."""
        x, weight, bias = range_.sizes[:3]
        args, out = range_.op["args"], range_.op["out"][0]
        work = oracle.of_operator("aten::_convolution", range_.sizes, range_.op)
        groups = args["groups"]
        depthwise = (groups > 1 and groups == x[1] and len(x) == 4 and not args["transposed"] and
                     range_.op["type"] == "float")
        self.push(range_)
        if depthwise:
            inner = Range(f"aten::_conv_depthwise2d, sizes = {[x, weight, [], bias, [], [], []]}",
                          range_.op)
            work = [
                oracle.Work("convolution_depthwise", work[0].multiply_adds,
                            sum(w.additions for w in work[1:]))
            ]
        elif args["transposed"]:
            inner = Range(f"aten::cudnn_convolution_transpose, sizes = {[x, weight] + [[]] * 8}",
                          range_.op)
        else:
            inner = Range(f"aten::cudnn_convolution, sizes = {[x, weight] + [[]] * 7}", range_.op)
        self.push(inner)
        run(work[0])
        self.pop(inner)
        if len(work) > 1:
            shape = [1, bias[0], *[1] * (len(out) - 2)]
            for name in (f"aten::reshape, sizes = {[bias, []]}",
                         f"aten::view, sizes = {[bias, []]}"):
                self.push(Range(name, range_.op))
            for _ in range(2):
                self.pop(inner)
            self.push(Range(f"aten::add_, sizes = {[out, shape, []]}", range_.op))
            run(work[1])
            self.pop(inner)
        self.pop(range_)


def convert(path, settings=False):
    """`settings`: with the names of flopinj.torch's observer."""
    gpu = Gpu(*stream.read(path))
    return (gpu.observed() or gpu) if settings else gpu


def convert_both(path):
    """With the names of emit_nvtx, and with those of flopinj.torch's observer: None where these
    have no settings."""
    plain = convert(path)
    return plain, plain.observed()
