"""The steps of tests/gpu/run, and their order. Each step returns rows of the report."""

import importlib.util
import json
import os
from pathlib import Path

import check
import facts
import findings
import machine
import ncu
import ranges
from networks import TABLES
from runner import SKIPPED, Fail, Runner, Skip
from theory import Expected

HERE = machine.HERE
TRAINED = [(model, mode) for model in ("mlp", "cnn")
           for mode in ("plain", "autograd-thread", "graph", "streams")] + [("gpt", "plain")]
SIZES = {"gpt": ("--layers", 1, "--batch", 1)}  # of models that the simulated GPU takes long for
# Windows that hang or count wrong where they are most used: the other windowed steps would only
# lose time.
GATE = "probe.in_callback"
FIRST_NETWORKS = [("small", 64), ("resnet18", 64), ("alexnet", 64)]
WORKLOADS = ("bf16", "attention", "compiled", "triton", "torch_profiler", "ddp", "jax",
             "checkpointed", "loader")
OVERHEAD = ("count", "timing", "multiplex")


class Steps(Runner):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.built, self.failed = {}, {}
        self.windowed = {}  # rows measured in windows, to be compared with full replay
        self.about, self.probed, self.tables = {}, {}, {}
        self.unreadable = ""  # why counters cannot be read here

    # --- the machine, and the programs that are compiled on it

    def build(self, names):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        architecture = machine.architecture(*self.options.capability)
        prebuilt = machine.Prebuilt(self.options.programs)
        self.built.update(prebuilt.take(self.folder, architecture, names))
        names = [name for name in names if name not in self.built]
        if not names:
            return []
        if self.toolkit.nvcc is None:
            raise Skip("there is no nvcc")
        self.built.update(self.toolkit.compile_all(self.folder, [architecture], names))
        self.log += [problem + "\n" for problem in self.built.values() if problem]
        broken = [name for name in names if self.built[name]]
        if broken:
            raise Fail("does not build: " + ", ".join(broken))
        return []

    def program(self, name):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        if name not in self.built:
            raise Skip("there is no nvcc")
        if self.built[name]:
            raise Fail(f"{name} does not build, see run.log")
        return f"./{name}"

    def facts(self):
        self.about.update(facts.facts())
        return []

    def doctor(self):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        code, _ = self.execute([self.tree / "bin/flopinj", "doctor"], 30)
        if code != 0:
            raise Fail(f"flopinj doctor ended with {code}")
        return []

    # --- questions about CUPTI

    def cuptis(self):
        return facts.fitting(facts.cuptis(), self.about["CUDA of the driver"] // 1000)

    def probe(self, name):
        if name not in findings.WITHOUT_COUNTERS:
            self.counters_allowed()
        program = self.program("probes")
        code, stdout = self.execute([program, name], 15)
        ended = "hung and was killed" if code is None else f"ended with {code}"
        self.probed[name] = (ended, stdout)
        if name == "machine":
            self.about.update((item, value) for item, value, _ in findings.observations(stdout))
        if code != 0:
            raise Fail(ended)
        observed = findings.observations(stdout)
        if not observed:
            raise Fail("observed nothing")
        if name == "counters" and ("counters can be read", "yes", "") not in observed:
            self.unreadable = "counters cannot be read here: " + "; ".join(
                str(value) for item, value, _ in observed if item.startswith("error"))
            raise Fail(self.unreadable)
        return []

    def question(self, name):
        """One of the questions that decide most, in all its ways (findings.OPEN). Those of PyTorch
        are left out where there is none, and on the simulated GPU, which has no CUDA runtime."""
        if name not in findings.WITHOUT_COUNTERS:
            self.counters_allowed()
        if self.options.simulate:
            environment = {"LD_LIBRARY_PATH": str(self.tree / "lib/flopinj/simgpu")}
        else:
            environment = {"LD_PRELOAD": path for path in self.cuptis()[:1]}  # the newest
        ends, outputs = [], []
        for way in findings.OPEN[name]:
            of_torch = bool(way) and way[0].startswith("torch")
            if of_torch and self.options.simulate:
                continue
            files = self.files_with_kernels() if name == "registers" else ()
            command = ["python3", HERE / "questions.py", name, *way, *files]
            code, stdout = self.execute(command, 90, environment=environment)
            if code == SKIPPED:
                continue
            ends.append(" ".join((*way, "hung and was killed" if code is None
                                  else f"ended with {code}")))
            outputs.append(stdout)
        self.probed[name] = (", ".join(ends), "".join(outputs))
        bad = [end for end in ends if not end.endswith("ended with 0")]
        if bad:
            raise Fail(", ".join(bad))
        if not findings.observations(self.probed[name][1]):
            raise Fail("observed nothing")
        return []

    def files_with_kernels(self):
        """PyTorch's, else a program of ours; on the simulated GPU, which takes PTX only, a text."""
        if self.options.simulate:
            text = self.folder / "kernels.ptx"
            text.write_bytes(ranges.ptx(["one", "two"]))
            return [text]
        torch = importlib.util.find_spec("torch")
        folders = torch.submodule_search_locations or [] if torch else []
        found = [file for folder in folders
                 for file in sorted(Path(folder).glob("lib/libtorch_cuda*.so"))]
        return found or [self.folder / self.program("probes")]

    def beside_torch(self):
        """A subscriber that shares CUPTI, before and after torch.profiler: the newest CUPTI of the
        driver's major version, since only 13.2 and later can be shared."""
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        environment = {"LD_PRELOAD": path for path in self.cuptis()[:1]}  # the newest
        ends, outputs = [], []
        for order in ("alone", "shared_first", "shared_second"):
            command = ["python3", HERE / "beside_torch.py", order]
            code, stdout = self.execute(command, 30, environment=environment)
            if code == SKIPPED:
                raise Skip("there is no PyTorch with a GPU")
            ends.append(f"{order} " + ("hung and was killed" if code is None
                                       else f"ended with {code}"))
            outputs.append(stdout)
        self.probed[findings.BESIDE_TORCH] = (", ".join(ends), "".join(outputs))
        if not findings.observations(outputs[0]):
            raise Fail("observed nothing")
        return []

    # --- programs whose operations are known

    def counters_allowed(self):
        if self.unreadable:
            raise Skip(self.unreadable)

    def windows_allowed(self):
        self.counters_allowed()
        if self.failed.get(GATE):
            raise Skip(f"{GATE} failed: windows are not tried further")

    def count(self):
        """`flopinj doctor --count`: kernels that need no compiler, each that may hang by itself. It
        leaves its findings."""
        self.counters_allowed()
        folder = self.options.out.resolve()
        environment = {"FLOPINJ_FINDINGS": str(folder)}
        if self.options.simulate:
            environment["LD_LIBRARY_PATH"] = str(self.tree / "lib/flopinj/simgpu")
        code, stdout = self.execute([self.tree / "bin/flopinj", "doctor", "--count"], 120,
                                    environment=environment)
        self.tables["flopinj doctor --count"] = ["```", *stdout.splitlines(), "```"]
        found = list(folder.glob("*-cuda*-cupti*.json"))
        if not found:
            raise Fail(f"flopinj doctor --count ended with {code}")
        rows = json.loads(found[0].read_text())["rows"]
        self.counted = [row for row in rows if row["verdict"] == "agrees"]
        bad = ("DIFFERS", "NOT COUNTED", "FAILED")
        return [check.Row(f"count: {row['name']}", row["of"], row["expected"], row["counted"],
                          "" if row["verdict"] == "agrees" else row["verdict"],
                          row["verdict"] not in bad) for row in rows]

    def count_by_replay(self):
        """The same kernels with every launch replayed, but for those with processes of their
        own."""
        rows = [row for row in getattr(self, "counted", []) if not row["alone"]]
        if not rows:
            raise Skip("the step count has left nothing to compare with")
        command = [self.tree / "lib/flopinj/known_kernels/known_kernels",
                   *(row["name"] for row in rows)]
        _, trace = self.profile("count.full", command, 110, "full")
        report = self.reduce(trace)
        launches = {kernel["kernel"]: kernel["launches"] for kernel in report["kernels"]}
        compared = []
        for row in rows:
            done = check.executed_by_precision(report, "kernel", row["kernel"]) or {}
            each = done.get(row["of"], 0) // launches.get(row["kernel"], 1)
            compared.append(check.exact(f"count.full: {row['name']}, windows against replay",
                                        row["of"], row["counted"], each))
        return compared

    def known(self, name, mode="multiplex"):
        program, step = self.program(name), name if mode == "multiplex" else f"{name}.{mode}"
        if not self.knows_mode(mode):
            raise Skip(f"this flopinj has no mode {mode}")
        self.windows_allowed()
        stdout, trace = self.profile(step, [program], 110, mode)
        cases = [json.loads(line) for line in stdout.splitlines() if line.startswith('{"case"')]
        report = self.reduce(trace, [case["case"] for case in cases])
        rows = check.check_cases(step, cases, report)
        if mode == "multiplex":
            self.windowed[name] = rows
            self.kernels_report = report
        return rows + check.same_figures(step, self.windowed.get(name, []), rows)

    def reference(self):
        """ncu reads the counters of `kernels`; the report of the step `kernels` has them too."""
        program, report = self.program("kernels"), getattr(self, "kernels_report", None)
        if self.about.get("ncu") is None:
            raise Skip("there is no ncu")
        if report is None:
            raise Skip("the step kernels has left no report to compare with")
        code, stdout = self.execute(ncu.command(program), 90)
        if code != 0:
            raise Fail(f"ncu ended with {code}")
        return ncu.compare("ncu", stdout, report)

    # --- the trainer, whose every kernel has a formula

    def trainer(self):
        return self.tree / "lib/flopinj/trainer/trainer"

    def train(self, model, mode, measuring="multiplex", suffix="", **rest):
        step = f"trainer.{model}.{mode}" + suffix
        if not self.knows_mode(measuring):
            raise Skip(f"this flopinj has no mode {measuring}")
        if measuring != "timing":
            self.windows_allowed()
        # Long enough for every counter group to be sampled, graph mode's three eager steps apart.
        command = [self.trainer(), "--model", model, "--mode", mode, "--steps", 40,
                   "--print-shapes", *SIZES.get(model, ())]
        stdout, trace = self.profile(step, command, 40, measuring, **rest)
        shapes, _ = json.JSONDecoder().raw_decode(stdout[stdout.index("{"):])
        report = self.reduce(trace)
        if measuring == "timing":
            return check.check_timing(step, Expected(shapes), report)
        return check.check_trainer(step, Expected(shapes), report)

    def every_cupti(self):
        """The trainer with each libcupti that is here and starts: each is to count alike."""
        if self.options.simulate:
            raise Skip("there is one simulated CUPTI")
        rows = []
        for number, path in enumerate(self.cuptis()):
            rows += self.train("mlp", "plain", suffix=f".cupti{number}", cupti=path)
        if not rows:
            raise Skip("there is no libcupti")
        return rows

    def without_rights(self):
        """Another user than root, who may not read counters on most machines: launches and times
        are recorded all the same, and the report says why there are no counts."""
        if os.getuid() != 0:
            raise Skip("only root can become another user")
        self.folder.chmod(0o777)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                   self.tree / "bin/flopinj", "run", "--force", "-o", "no_rights.pb",
                   *(["--simulate"] if self.options.simulate else self.cupti()), "--",
                   self.trainer(), "--model", "mlp", "--mode", "plain", "--steps", 200]
        code, _ = self.execute(command, 40)
        if code != 0:
            raise Fail(f"the program ended with {code}")
        report = self.reduce("no_rights.pb")
        said = [row["message"] for row in report["diagnostics"]]
        counted = report["figures"]["flop"] is not None
        self.about["counters without rights"] = "read" if counted else "; ".join(said) or None
        return [check.Row("no rights: counts, or a reason", "", None, None,
                          "" if counted or said else "NOT EXPLAINED", bool(counted or said))]

    def killed(self):
        """SIGTERM in the middle: the trace is readable, and lacks the last second at most."""
        command = [self.trainer(), "--model", "mlp", "--mode", "plain", "--steps", 100000000]
        _, trace = self.profile("killed", command, 30, stop_after=8)
        report = self.reduce(trace)
        launches = report["ledger"][-1]["launches"]
        return [check.Row("killed: launches recorded", "", None, None,
                          f"{launches:,}" if launches else "NOT EXPLAINED", launches > 0)]

    # --- frameworks

    def network(self, name, batch, mode="multiplex"):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        if mode != "timing":
            self.windows_allowed()
        step = f"pytorch.{name}.batch{batch}" + ("" if mode == "multiplex" else f".{mode}")
        command = ["python3", HERE / "network.py", name, batch]
        stdout, trace = self.profile(step, command, 80, mode)
        report = self.reduce(trace)
        if mode == "timing":
            return check.check_timed(step, report)
        return check.check_network(step, json.loads(stdout.splitlines()[-1]), report)

    def workload(self, name):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        self.windows_allowed()
        step = f"workload.{name}"
        stdout, trace = self.profile(step, ["python3", HERE / "workloads.py", name], 90)
        formula = json.loads(stdout.splitlines()[-1])
        report = self.reduce(trace)
        if "forward" in formula and any(row["phase"] == "forward" for row in report["phases"]):
            return check.check_network(step, formula, report)
        return check.check_timed(step, report)

    def stopped_workload(self):
        if self.options.simulate:
            raise Skip("not on the simulated GPU")
        command = ["python3", HERE / "workloads.py", "forever"]
        _, trace = self.profile("workload.stopped", command, 60, stop_after=30)
        return check.check_timed("workload.stopped", self.reduce(trace))

    def overhead(self):
        """Milliseconds per step of a program of many small launches, plain and profiled."""
        if self.options.simulate:
            raise Skip("times of the simulated GPU say nothing")
        command = ["python3", HERE / "workloads.py", "overhead"]
        runs = [("plain", lambda: self.execute(command, 60)[1])]
        runs += [(f"flopinj --mode {mode}", lambda m=mode: self.profile(
            f"overhead.{m}", command, 60, m, defaults=True)[0]) for mode in OVERHEAD]
        runs += [("torch.profiler", lambda: self.execute(
            ["python3", HERE / "workloads.py", "profiled_overhead"], 60)[1]),
            ("ncu", lambda: self.execute(
                ncu.reading(["python3", HERE / "workloads.py", "brief_overhead"]), 60)[1]),
            ("plain again", lambda: self.execute(command, 60)[1])]
        if self.about.get("ncu") is None:
            runs = [run for run in runs if run[0] != "ncu"]
        table = []
        for name, measure in runs:
            try:
                said = [line for line in measure().splitlines() if line.startswith("{")]
                result = json.loads(said[-1]) if said else None
            except Fail as problem:
                result = None
                self.log.append(f"{name}: {problem}\n")
            table.append((name, result))
        self.tables["Milliseconds per step of 32 small layers with Adam"] = findings.overhead(table)
        if table[0][1] is None:
            raise Skip("the program lacks its requirements here")
        return []

    # --- the order

    def plan(self, first_ten_minutes=False):
        """Name of each step and the function that does it, those that say most first: whether
        counters can be read and how windows behave, known kernels against theory and ncu, programs,
        then the other questions."""
        yield "facts", self.facts
        yield "doctor", self.doctor
        yield "build.probes", lambda: self.build(["probes"])
        yield "probe.machine", lambda: self.probe("machine")
        for name in findings.FIRST:
            ask = self.question if name in findings.OPEN else self.probe
            yield f"probe.{name}", lambda a=name, b=ask: b(a)
        yield "count", self.count
        yield "build.programs", lambda: self.build(["kernels", "products"])
        yield "kernels", lambda: self.known("kernels")
        yield "ncu", self.reference
        yield "trainer.mlp.plain", lambda: self.train("mlp", "plain")
        yield "trainer.cnn.autograd-thread", lambda: self.train("cnn", "autograd-thread")
        # Half of the product needs no window: launches, times, graphs, ranges.
        for model, mode in (("mlp", "plain"), ("mlp", "graph"), ("cnn", "autograd-thread")):
            yield (f"trainer.{model}.{mode}.timing",
                   lambda a=model, b=mode: self.train(a, b, "timing", ".timing"))
        yield "pytorch.resnet18.batch64.timing", lambda: self.network("resnet18", 64, "timing")
        yield "pytorch.resnet18.batch64", lambda: self.network("resnet18", 64)
        yield "workload.bf16", lambda: self.workload("bf16")
        for name in findings.QUESTIONS:
            if name not in (findings.BESIDE_TORCH, *findings.FIRST):
                yield f"probe.{name}", lambda a=name: self.probe(a)
        yield f"probe.{findings.BESIDE_TORCH}", self.beside_torch
        yield "overhead", self.overhead
        if first_ten_minutes:
            return
        for model, mode in TRAINED:
            if (model, mode) not in (("mlp", "plain"), ("cnn", "autograd-thread")):
                yield f"trainer.{model}.{mode}", lambda a=model, b=mode: self.train(a, b)
        yield ("trainer.mlp.plain.defaults",
               lambda: self.train("mlp", "plain", suffix=".defaults", defaults=True))
        yield "trainer.mlp.plain.every_cupti", self.every_cupti
        yield "without_rights", self.without_rights
        yield "killed", self.killed
        yield "products", lambda: self.known("products")
        for name in WORKLOADS:
            if name != "bf16":
                yield f"workload.{name}", lambda a=name: self.workload(a)
        yield "workload.stopped", self.stopped_workload
        # The reference: every launch replayed. It must say what the windows said, since both must
        # say what theory says.
        yield "count.full", self.count_by_replay
        yield "kernels.full", lambda: self.known("kernels", "full")
        yield "trainer.mlp.plain.full", lambda: self.train("mlp", "plain", "full", ".full")
        later = [(name, batch) for batch in (64, 1, 128) for name in TABLES]
        for name, batch in dict.fromkeys(FIRST_NETWORKS + later):
            if (name, batch) != ("resnet18", 64):
                yield f"pytorch.{name}.batch{batch}", lambda a=name, b=batch: self.network(a, b)
