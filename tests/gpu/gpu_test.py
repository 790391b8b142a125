"""tests/gpu/run, tried without a GPU: that it skips, that it judges, that its programs compile.

Usage: gpu_test.py CLASS. Ends with 77 (skipped) where the class cannot be tried here.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("integration", "networks"))]

import answers  # noqa: E402
import check  # noqa: E402
import cubin  # noqa: E402
import facts  # noqa: E402
import findings  # noqa: E402
import machine  # noqa: E402
import ncu  # noqa: E402
import runner  # noqa: E402
from steps import Steps  # noqa: E402

BUILD = Path(os.environ.get("FLOPINJ_BUILD", "."))


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, *arguments, **environment):
        return subprocess.run([sys.executable, HERE / "run", *map(str, arguments)], text=True,
                              capture_output=True, timeout=240, check=False,
                              env={**os.environ, **environment})


class WithoutGpu(TestCase):
    def test_one_clear_line_and_nothing_else(self):
        try:
            self.skipTest(f"here is a GPU: {machine.gpu()[0]}")
        except machine.NoGpu:
            pass
        out = self.folder / "out"
        done = self.run_command(out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Askipped: no NVIDIA GPU: [^\n]+\n\Z")
        self.assertFalse(out.exists())


class OnSimulatedGpu(TestCase):
    def test_trainer_steps_pass_and_their_traces_are_packed(self):
        done = self.run_command(self.folder / "out", "--tree", BUILD, "--simulate", "--only",
                                "trainer.*.graph*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "3 passed, 0 failed, 2 skipped\n")
        report = (self.folder / "out/gpu-report.txt").read_text()
        self.assertIn("trainer.cnn.graph: conv2d_forward", report)
        self.assertNotIn("FAILED", report)

        with tarfile.open(self.folder / "out/data.tar.gz") as archive:
            archive.extractall(self.folder / "data")
        names = {file.name for file in (self.folder / "data").iterdir()}
        steps = ("trainer.cnn.graph", "trainer.mlp.graph", "trainer.mlp.graph.timing")
        self.assertEqual(names, {f"{step}.{kind}" for step in steps
                                 for kind in ("pb", "json", "about.json")})
        self.check_as_golden_data(self.folder / "data")

    def test_known_kernels_are_counted(self):
        done = self.run_command(self.folder / "out", "--tree", BUILD, "--simulate", "--only",
                                "count")
        self.assertEqual(done.stdout, "1 passed, 0 failed, 2 skipped\n", done.stderr)
        report = (self.folder / "out/gpu-report.txt").read_text()
        self.assertRegex(report, r"count: FFMA +fp32 +4,096 +4,096 +1.000000\n")

    def answers_to(self, question, **environment):
        """What the command prints of a question before its summary."""
        out = self.folder / "out"
        done = self.run_command(out, "--tree", BUILD, "--simulate", "--only", f"probe.{question}",
                                **environment)
        *lines, summary = done.stdout.splitlines()
        self.assertEqual(summary, "1 passed, 0 failed, 2 skipped", done.stderr)
        found = (out / "findings.md").read_text()
        self.assertIn(findings.QUESTIONS[question], found)
        for line in lines:
            self.assertIn(f"- {line}\n", found)
        return lines

    def test_open_questions_have_answers_which_say_what_code_they_delete(self):
        whole, = self.answers_to("records_beside_ranges")
        self.assertRegex(whole, r"^kernel records are whole beside ranges: yes; delete ")
        lost, = self.answers_to("records_beside_ranges", SIMGPU_FAULT="drop_activity=9")
        self.assertRegex(lost, r"^kernel records are whole beside ranges: no; keep both")
        switched, stopped = self.answers_to("other_thread")
        self.assertRegex(switched, r"may enable and disable: yes; delete .*kDueHere$")
        self.assertRegex(stopped, r"may stop a window: yes; delete .*Closer$")
        switched, stopped = self.answers_to("other_thread",
                                            SIMGPU_FAULT="switch_elsewhere,stop_elsewhere")
        self.assertRegex(switched, r"may enable and disable: no; delete .* launches enables$")
        self.assertRegex(stopped, r"may stop a window: no; delete .* launches closes$")
        said, = self.answers_to("registers")
        self.assertRegex(said, r"^cubins say registers .*: yes; delete Functions::ask_driver")

    def test_the_cost_of_start_is_asked_of_few_and_many_modules(self):
        self.assertEqual(self.answers_to("cost_of_start"), [])  # that needs PyTorch
        found = (self.folder / "out/findings.md").read_text()
        for modules in (1, 50):
            for window in ("empty", "first", "second"):
                self.assertRegex(found, rf"\| {modules} modules of 100 kernels: instructions, "
                                 rf"{window} window: Start \| [\d.e-]+ ms \|")
        self.assertIn("instructions, first window: ranges | 1 |", found)

    def test_a_run_begins_where_it_is_told_to(self):
        done = self.run_command(self.folder / "out", "--tree", BUILD, "--simulate", "--from",
                                "without_rights", "--only", "[!tp]*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("facts", done.stderr)
        self.assertRegex(done.stderr, r"(passed|skipped) +without_rights")
        self.assertRegex(done.stderr, r"passed +killed")
        self.assertRegex((self.folder / "out/gpu-report.txt").read_text(),
                         r"killed: launches recorded +[1-9][\d,]*")
        done = self.run_command(self.folder / "out", "--tree", BUILD, "--simulate", "--from",
                                "kernel")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"there is no step kernel; --list prints them\n\Z")

    def test_the_first_ten_minutes_begin_with_what_decides_most(self):
        def listed(*options):
            done = self.run_command("unused", "--tree", BUILD, "--list", *options)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.split()
        first, whole = listed("--first-ten-minutes"), listed()
        self.assertEqual(first, whole[:len(first)])
        order = ["facts", "probe.machine", "probe.counters", "probe.in_callback",
                 "probe.records_beside_ranges", "probe.other_thread", "probe.cost_of_start",
                 "probe.registers", "probe.launch_limits", "count", "kernels", "ncu",
                 "trainer.mlp.plain", "trainer.mlp.plain.timing", "probe.cost"]
        self.assertEqual([name for name in first if name in order], order)
        self.assertEqual({name for name in first if name.startswith("probe.")},
                         {f"probe.{name}" for name in ("machine", *findings.QUESTIONS)})

    def steps(self, **rest):
        options = argparse.Namespace(tree=BUILD, seconds=60, simulate=False, programs=None,
                                     capability=(9, 0), out=self.folder, **rest)
        return Steps(options, self.folder)

    def test_where_counters_cannot_be_read_only_steps_without_them_go_on(self):
        steps = self.steps()
        steps.program = lambda name: f"./{name}"
        line = '{{"item": "{}", "value": "{}", "unit": ""}}\n'.format
        said = {"counters": line("error of cuptiRangeProfilerEnable", "NO_RIGHTS")
                + line("counters can be read", "no"),
                "large_graph": line("records", "9")}
        steps.execute = lambda command, seconds: (0, said[command[1]])
        with self.assertRaisesRegex(runner.Fail, "counters cannot be read here: NO_RIGHTS"):
            steps.probe("counters")
        self.assertEqual(steps.probe("large_graph"), [])
        for step in (lambda: steps.probe("cost"), steps.count, lambda: steps.known("kernels"),
                     lambda: steps.train("mlp", "plain")):
            with self.assertRaisesRegex(runner.Skip, "cannot be read here: NO_RIGHTS"):
                step()

    def test_programs_that_were_compiled_elsewhere_are_taken_for_their_gpus(self):
        made = self.folder / "made"
        made.mkdir()
        (made / "probes").write_text("for Hopper")
        (made / machine.Prebuilt.LIST).write_text("90a\n100a\n")
        prebuilt = machine.Prebuilt(made)
        self.assertEqual(prebuilt.take(self.folder, "80", ["probes"]), {})
        self.assertEqual(prebuilt.take(self.folder, "90a", ["probes", "kernels"]), {"probes": ""})
        self.assertEqual((self.folder / "probes").read_text(), "for Hopper")
        self.assertEqual(machine.Prebuilt(None).take(self.folder, "90a", ["probes"]), {})

    def test_a_program_that_hangs_leaves_its_stacks(self):
        if shutil.which("gdb") is None:
            self.skipTest("there is no debugger")
        options = argparse.Namespace(tree=BUILD, seconds=60, simulate=True)
        program = runner.Runner(options, self.folder)
        code, _ = program.execute(["sh", "-c", "sleep 50; true"], 2)
        log = "".join(program.log)
        self.assertIsNone(code)
        self.assertEqual(len(re.findall(r"-- stacks of process \d+\n", log)), 2, log)
        self.assertIn("#0", log)
        self.assertIn("[killed after 2 s]", log)

    def check_as_golden_data(self, folder):
        spec = importlib.util.spec_from_file_location("data_test",
                                                      HERE.parent / "data/data_test.py")
        data_test = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(data_test)
        flopreduce = BUILD / "bin/flopreduce"
        self.assertEqual(data_test.main(flopreduce, folder=folder), 0)
        expected = folder / "trainer.cnn.graph.json"
        report = json.loads(expected.read_text())
        report["figures"]["launches"] += 1
        expected.write_text(json.dumps(report))
        self.assertEqual(data_test.main(flopreduce, folder=folder), 1)
        expected.unlink()
        self.assertEqual(data_test.main(flopreduce, folder=folder), 1)
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertEqual(data_test.main(flopreduce, folder=empty), 77)


def work(**precision):
    """What a phase or a kernel did: FLOP by precision."""
    total = sum(precision.values())
    return {"flop": total, "matrix_flop": total, "matrix_flop_exact": str(total),
            "by": {name: {"flop": flop} for name, flop in precision.items()}}


def tables(kind, rows):
    """A report's tables of phases or kernels; `rows`: (name, work)."""
    return {
        f"{kind}s": [{kind: name, **done} for name, done in rows],
        f"{kind}_precisions": [{kind: name, "precision": precision, **one}
                               for name, done in rows
                               for precision, one in done.get("by", {}).items()]
    }


def report(phases, unmeasured=0, kernels=()):
    return {
        "ledger": [{"unmeasured": unmeasured, "dropped": 0, "balanced": True}], "signatures": [],
        **tables("phase", phases.items()), **tables("kernel", kernels)
    }


class Judgement(TestCase):
    """The checker against reports made up here: it must accept what theory says and nothing
    else."""

    def verdict(self, case, phase_of_case, **rest):
        rows = check.check_cases("step", [case], report({case["case"]: phase_of_case}, **rest))
        return [row.ok for row in rows if row.case == case["case"]], all(row.ok for row in rows)

    def test_exact_figures(self):
        case = {"case": "a", "kind": "axpy", "repeats": 4, "n": 1000, "threads": 1024}
        self.assertTrue(self.verdict(case, work(fp32=8000))[1])
        for wrong in (work(fp32=7998), work(fp32=8004), work(fp32=8000, fp64=4),
                      work(fp64=8000), work()):
            self.assertIn(False, self.verdict(case, wrong)[0], wrong)
        self.assertFalse(self.verdict(case, {**work(fp32=8000), "flop": None})[1])
        self.assertFalse(self.verdict(case, work(fp32=8000), unmeasured=1)[1])

    def test_case_that_is_not_in_the_trace(self):
        case = {"case": "a", "kind": "axpy", "repeats": 4, "n": 1000}
        self.assertFalse(all(row.ok for row in check.check_cases("step", [case], report({}))))
        self.assertFalse(all(row.ok for row in check.check_cases("step", [], report({}))))

    def test_nothing_counted_is_right_where_nothing_is_a_flop(self):
        case = {"case": "x", "kind": "special_chain", "repeats": 4, "threads": 128, "steps": 9}
        self.assertTrue(self.verdict(case, work())[1])
        self.assertFalse(self.verdict(case, work(fp32=4 * 128))[1])
        # one constant per thread by a packed half instruction, a multiply-add on two lanes
        self.assertTrue(self.verdict(case, work(fp16=4 * 4 * 128))[1])
        self.assertFalse(self.verdict(case, work(fp16=4 * 100))[1])

    def test_padding_up_to_whole_tiles_and_no_more(self):
        case = {"case": "p", "kind": "blas_bf16", "repeats": 2, "m": 8191, "n": 4097, "k": 1023}
        theory = 2 * 8191 * 4097 * 1023
        whole = 2 * 8192 * 4352 * 1024
        for each in (theory, theory + 2, whole):
            self.assertTrue(self.verdict(case, work(tensor_bf16=2 * each))[1], each)
        for each in (theory - 2, whole + 2):
            self.assertFalse(self.verdict(case, work(tensor_bf16=2 * each))[1], each)
        self.assertTrue(self.verdict(case, work(tensor_bf16=2 * theory, fp32=2 * 8191 * 4097))[1])
        self.assertFalse(self.verdict(case, work(tensor_bf16=2 * theory, tensor_fp16=2))[1])

    def test_whole_tiles_have_no_padding(self):
        case = {"case": "p", "kind": "blas_fp16", "repeats": 2, "m": 8192, "n": 8192, "k": 8192}
        self.assertTrue(self.verdict(case, work(tensor_fp16=2 * 2 * 8192**3))[1])
        self.assertFalse(self.verdict(case, work(tensor_fp16=2 * 2 * 8192**3 + 2))[1])

    def test_fp64_counts_alike_on_either_unit(self):
        case = {"case": "p", "kind": "blas_fp64", "repeats": 2, "m": 256, "n": 256, "k": 128}
        done = 2 * 2 * 256 * 256 * 128
        self.assertTrue(self.verdict(case, work(tensor_fp64=done))[1])
        self.assertTrue(self.verdict(case, work(fp64=done))[1])
        self.assertFalse(self.verdict(case, work(fp64=2 * done, tensor_fp64=2 * done))[1])

    def test_trainer_exact(self):
        class Expected:
            kernel_flop = {"sgd": 100, "softmax_cross_entropy": 60}
            kernel_launches = {"sgd": 2, "softmax_cross_entropy": 1}

        def verdict(sgd, loss, launches=2):
            kernels = [("sgd", {"launches": launches, **work(fp32=sgd)}),
                       ("softmax_cross_entropy", {"launches": 1, **work(fp32=loss)})]
            rows = check.check_trainer("t", Expected, report({}, kernels=kernels))
            return all(row.ok for row in rows)

        self.assertTrue(verdict(100, 60))
        for wrong in ((101, 60), (99, 60), (100, 59), (100, 61), (100, 60, 3)):
            self.assertFalse(verdict(*wrong), wrong)

    def test_network_needs_a_reason_for_fewer_operations(self):
        def verdict(forward, kernels=()):
            phases = {"forward": work(fp32=forward), "backward": work(fp32=200)}
            rows = check.check_network("n", {"forward": 100, "backward": 200},
                                       report(phases, kernels=kernels))
            return all(row.ok for row in rows)

        winograd = [("cudnn::winograd_nonfused::f", {})]
        self.assertTrue(verdict(100))
        self.assertTrue(verdict(110))
        self.assertTrue(verdict(50, winograd))
        for wrong in ((99,), (401,), (20, winograd)):
            self.assertFalse(verdict(*wrong), wrong)

    def test_kernels_of_a_network_that_are_launched_once_are_named(self):
        def rows(unmeasured, *signatures):
            done = report({"forward": work(fp32=100), "backward": work(fp32=200)}, unmeasured)
            done["signatures"] = [
                dict(zip(("kernel", "launches", "flop_per_launch"), s)) for s in signatures
            ]
            return check.check_network("n", {"forward": 100, "backward": 200}, done)

        once, known, often = ("set_up", 1, None), ("sgemm", 24, "100"), ("dropout", 2, None)
        self.assertTrue(all(r.ok for r in rows(1, once, known)))
        self.assertIn("set_up", rows(1, once, known)[0].explanation)
        for wrong in ((1, known), (2, once), (2, often), (9, *[once] * 9)):
            self.assertFalse(rows(*wrong)[0].ok, wrong)

    def test_windows_against_replay(self):
        row = check.exact("a", "fp32", 8, 8)
        self.assertTrue(
            all(r.ok for r in check.same_figures("s", [row], [check.exact("a", "fp32", 8, 8)])))
        self.assertFalse(
            all(r.ok for r in check.same_figures("s", [row], [check.exact("a", "fp32", 8, 9)])))
        self.assertFalse(all(r.ok for r in check.same_figures("s", [row], [])))

    def test_timing_needs_every_launch_and_a_time_of_each(self):
        class Expected:
            kernel_launches = {"sgd": 2}

        def verdict(launches=2, time=5, name="sgd", balanced=True):
            kernels = [{"kernel": name, "launches": launches, "gpu_time_ns": time}]
            timed = {"kernels": kernels, "ledger": [{"launches": launches, "balanced": balanced}]}
            return all(row.ok for row in check.check_timing("t", Expected, timed))

        self.assertTrue(verdict())
        for wrong in ({"launches": 1}, {"time": None}, {"name": "other"}, {"balanced": False}):
            self.assertFalse(verdict(**wrong), wrong)

    def test_figures_of_nsight_compute(self):
        ffma = ncu.METRICS[0]
        header = '"ID","Kernel Name","Block Size","Grid Size","' + ffma + '"\n'
        rows = (
            '"","","","","inst"\n'
            '"0","void <unnamed>::chain<float>(int, float *)","(128, 1, 1)","(4, 1, 1)","5,120"\n')
        text = "==PROF== Connected\n" + header
        text += rows.replace("<unnamed>::", "(anonymous namespace)::")

        def verdict(mean, block=128, metric=ffma):
            key = {"kernel": "void (anonymous namespace)::chain<float>(int, float*)",
                   "stable_hash": "1"}
            made = {"signatures": [{**key, "grid": "4x1x1", "block": f"{block}x1x1"}],
                    "samples": [{**key, "metric": metric, "min": mean, "max": mean,
                                 "mean": mean}]}
            return all(row.ok for row in ncu.compare("ncu", text, made))

        self.assertTrue(verdict(5120.0))
        self.assertFalse(verdict(5119.0))
        self.assertFalse(verdict(5120.0, block=64))  # nothing in common
        self.assertFalse(verdict(5120.0, metric="another.sum"))

    def test_overhead_is_a_ratio_to_the_plain_run(self):
        run = {"milliseconds": 2.0, "fastest": 1.5, "slowest": 3.0}
        table = findings.overhead([("plain", run), ("timing", {**run, "milliseconds": 2.5}),
                                   ("x", None)])
        self.assertTrue(table[2].endswith("| 1.000 |"), table)
        self.assertTrue(table[3].endswith("| 1.250 |"), table)
        self.assertIn("did not run", table[4])

    def test_findings_hold_what_was_observed_and_no_more(self):
        output = ('== noise\n{"item": "ranges | all", "value": 3, "unit": ""}\n'
                  '{"item": "Start", "value": 1.5, "unit": "us"}\n')
        text = findings.markdown({"GPU": "G", "driver": None},
                                 {"graph": ("ended with 0", output), "memory": ("hung", "")})
        self.assertIn("| ranges \\| all | 3 |\n| Start | 1.5 us |", text)
        self.assertIn("Nothing was observed: the question stays open.", text)
        self.assertNotIn("driver", text)
        self.assertNotIn(findings.QUESTIONS["cost"], text)


class Answers(unittest.TestCase):
    """What follows from answers that no simulated GPU gives."""

    def of(self, question, items):
        return answers.lines({question: [(item, value, "") for item, value in items.items()]})

    def start(self, program, empty, first, work, second):
        window = f"{program}: instructions, {{}} window: {{}}".format
        return {window("empty", "Start"): empty, window("first", "Start"): first,
                window("first", "work"): work, window("second", "Start"): second,
                window("second", "work"): 1.0}

    def test_a_start_that_patches_all_kernels_keeps_its_limit(self):
        cheap = self.start("PyTorch", 1.0, 1.5, 1.0, 1.0)
        line, = self.of("cost_of_start", cheap)
        self.assertRegex(line, "at most 20 ms more than the next: yes; delete .*trial.cpp")
        in_trial = self.start("PyTorch, all modules loaded", 9000.0, 3.0, 1.0, 1.0)
        dear, trial = self.of("cost_of_start", {**cheap, **in_trial})
        self.assertRegex(dear, "than the next: no; keep the limit")
        self.assertRegex(trial, "half of that cost or more: yes; ")
        at_launch = self.start("PyTorch", 1.0, 1.5, 700.0, 1.0)
        self.assertRegex(self.of("cost_of_start", at_launch)[1], "more: no; delete .*trial.cpp: ")
        of_others = self.start("50 modules of 100 kernels", 9000.0, 3.0, 1.0, 1.0)
        self.assertEqual(self.of("cost_of_start", of_others), [])

    def test_records_and_ranges_that_refuse_each_other(self):
        line, = self.of("records_beside_ranges", {"no ranges: records": 100, "error of "
                                                  "cuptiRangeProfilerEnable": "NOT_COMPATIBLE"})
        self.assertRegex(line, "whole beside ranges: no; ")

    def test_a_profiler_that_another_thread_enables_and_that_counts_nothing(self):
        items = {f"{part} by another thread, its context current: counts": "[10, 20, 30, 40]"
                 for part in ("enable", "enable_again", "disable")}
        self.assertRegex(self.of("other_thread", items)[0], "enable and disable: yes; ")
        items["enable_again by another thread, its context current: counts"] = "[]"
        self.assertRegex(self.of("other_thread", items)[0], "enable and disable: no; ")
        items.popitem()
        self.assertEqual(self.of("other_thread", items), [])  # not all of them were asked

    def test_one_kernel_of_other_registers_keeps_the_driver_asked(self):
        seen = {"kernels: compared": 40_000, "kernels: not in the cubin": 0,
                "kernels: registers differ": 0, "kernels: static shared memory differs": 0}
        self.assertRegex(self.of("registers", seen)[0], "driver does: yes; ")
        self.assertRegex(self.of("registers", {**seen, "kernels: registers differ": 1})[0],
                         "driver does: no; keep ")
        self.assertEqual(self.of("registers", {**seen, "kernels: compared": 0}), [])

    def test_where_a_window_is_closed(self):
        item = ("opened at ENTER of launch 3 of 8, closed at ENTER of launch 7, "
                "gpu__time_duration.sum: values")
        self.assertRegex(self.of("close_at_enter", {item: "9 9 9 9"})[0], "behind it: yes; ")
        self.assertRegex(self.of("close_at_enter", {item: "9 9 9"})[0], "behind it: no; close ")


OF_REGISTERS = """
__global__ void few(float* out) { *out = 1; }
template <int kFloats> __global__ void shared(const float* in, float* out) {
  __shared__ float kept[kFloats];
  kept[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 16; ++i) out[i] = sqrtf(kept[i] + kept[kFloats - 1 - i]);
}
extern __shared__ float given[];
__global__ void dynamic(int n, float* out) {
  given[threadIdx.x] = out[n];
  __syncthreads();
  out[n] = given[n];
}
template __global__ void shared<128>(const float*, float*);
template __global__ void shared<3000>(const float*, float*);
"""


class Cubins(TestCase):
    def test_registers_and_shared_memory_are_those_that_ptxas_says(self):
        nvcc = machine.Toolkit().nvcc
        if nvcc is None:
            self.skipTest("there is no nvcc")
        (self.folder / "of.cu").write_text(OF_REGISTERS)
        for architecture in ("sm_80", "sm_90a", "sm_100a"):
            with self.subTest(architecture):
                done = subprocess.run(
                    [nvcc, "-cubin", f"-arch={architecture}", "-Xptxas", "-v", "of.cu"],
                    cwd=self.folder, text=True, capture_output=True, timeout=120, check=True)
                said = {}
                for text in done.stderr.split("Compiling entry function ")[1:]:
                    used = re.search(r"Used (\d+) registers", text)
                    shared = re.search(r"(\d+) bytes smem", text)
                    said[text.split("'")[1]] = (int(used[1]), int(shared[1]) if shared else 0)
                self.assertEqual(len(said), 4, done.stderr)
                self.assertEqual(cubin.kernels((self.folder / "of.cubin").read_bytes()), said)

    def test_fatbins_of_a_library_are_found_whole(self):
        nvcc = machine.Toolkit().nvcc
        if nvcc is None:
            self.skipTest("there is no nvcc")
        (self.folder / "of.cu").write_text(OF_REGISTERS)
        command = [nvcc, "-arch=sm_90a", "-shared", "-Xcompiler", "-fPIC", "of.cu", "-o", "of.so"]
        subprocess.run(command, cwd=self.folder, timeout=120, check=True, capture_output=True)
        found = list(cubin.fatbins(self.folder / "of.so"))
        self.assertTrue(found)
        for each in found:
            magic, _, header, rest = cubin.FATBIN_HEADER.unpack_from(each)
            self.assertEqual((magic, header + rest), (cubin.FATBIN_MAGIC, len(each)))


# Two clients of CUPTI beside each other: launches before the second one begins, and after.
TWO_CLIENTS = """
import ctypes, json, sys
from cuda.bindings import driver
import subscriber

def ok(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))))
module = ok(driver.cuModuleLoadData(open(sys.argv[1], 'rb').read()))
dot = ok(driver.cuModuleGetFunction(module, b'dot'))
memory = ok(driver.cuMemAlloc(4096))
assert subscriber.loaded_cupti(13) is None
ctypes.CDLL('libcupti.so.13')
cupti = subscriber.loaded_cupti(13)
clients = [subscriber.Subscriber(cupti) for _ in range(2)]

def launch(times):
    for _ in range(times):
        ok(driver.cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, 0, 0,
                                 ((7, memory, memory), (ctypes.c_int, None, None)), 0))
    ok(driver.cuCtxSynchronize())

answers = [clients[0].begin()]
launch(10)
answers.append(clients[1].begin())
launch(20)
print(json.dumps([subscriber.version(cupti), answers, [client.count() for client in clients]]))
"""


class SharedCupti(TestCase):
    def of_two_clients(self, version):
        if importlib.util.find_spec("cuda") is None:
            self.skipTest("cuda-bindings is not installed")
        done = subprocess.run(
            [sys.executable, "-c", TWO_CLIENTS, BUILD / "tests/integration/client_kernels.ptx"],
            text=True, capture_output=True, timeout=120, check=False,
            env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib/flopinj/simgpu"),
                 "PYTHONPATH": str(HERE), "SIMGPU_CUPTI_VERSION": version})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_each_client_has_all_kernels_from_its_beginning_on(self):
        for version, number in (("13.2", 130200), ("13.3", 130300), ("13.5", 130500)):
            with self.subTest(version):
                found, answers, counts = self.of_two_clients(version)
                self.assertEqual(found, number)
                self.assertEqual([set(each.values()) for each in answers], [{0}, {0}])
                self.assertEqual(counts, [30, 20])

    def test_an_older_cupti_refuses_and_that_is_said(self):
        _, answers, counts = self.of_two_clients("13.0")
        self.assertEqual(answers[0], {"cuptiSubscribe_v2": 1})  # CUPTI_ERROR_INVALID_PARAMETER
        self.assertEqual(counts, [0, 0])

    def test_a_cupti_that_is_newer_than_the_driver_is_not_taken(self):
        known = {"/a": "API 28", "/b": "API 130000", "/c": "API 130300",
                 "/d": "cuptiGetVersion answers 999", "/e": "API 140000"}
        self.assertEqual(facts.fitting(known, 13), ["/c", "/b", "/a"])
        self.assertEqual(facts.fitting(known, 12), ["/a"])


class Programs(TestCase):
    def test_compile_for_ampere_hopper_and_blackwell(self):
        toolkit = machine.Toolkit()
        needed = {name for _, libraries in machine.PROGRAMS.values() for name in libraries}
        if toolkit.nvcc is None or any(toolkit.library(name) is None for name in needed):
            self.skipTest("there is no CUDA toolkit with nvcc, cuBLAS and CUPTI")
        problems = toolkit.compile_all(self.folder, ["80", "90a", "100a"])
        self.assertEqual(problems, dict.fromkeys(machine.PROGRAMS, ""))
        # A program without its GPU says so on stderr and does not pretend.
        done = subprocess.run([self.folder / "kernels"], text=True, capture_output=True, timeout=60,
                              check=False)
        if done.returncode != 0:
            self.assertEqual(done.stdout, "")
            self.assertIn("cudaGetDeviceProperties", done.stderr)
        # Every probe has its question, and the other way round, but for questions that are
        # programs of their own. (A driver's library is needed to start.)
        done = subprocess.run(
            [self.folder / "probes"], text=True, capture_output=True, timeout=60, check=False,
            env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib/flopinj/simgpu")})
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        of_program = set(findings.QUESTIONS) - {findings.BESIDE_TORCH, *findings.OPEN}
        self.assertEqual(set(done.stdout.split()), {*of_program, "machine"})


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    result = program.result
    if result.skipped:
        print(f"skipped: {result.skipped[0][1]}")
    sys.exit(1 if not result.wasSuccessful() or result.testsRun == 0 else
             77 if len(result.skipped) == result.testsRun else 0)
