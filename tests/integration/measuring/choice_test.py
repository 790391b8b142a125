"""Launches that the user chose are recorded, all of them, and no other: by kernel name, by NVTX
range, by number, and between cudaProfilerStart and cudaProfilerStop.

What is expected follows from the clients' sources: how often each launches what, and where.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import CLIENTS, FLOPINJ, TRAINER, injected_environment  # noqa: E402

PATIENCE_S = 60
# nvtx_client's: one before all ranges but one, "measured", nine one by one, three of aten::mm, two
# of long names, and the iterations.
NVTX_LAUNCHES = 1 + 40 + 9 + 3 + 2 + 5000
CAPTURE = {"CAPTURE_RANGE": "cudaProfilerApi"}


class TestCase(harness.TestCase):
    def recorded(self, *client, mode="count", **settings):
        """The report of the client's recording with these FLOPINJ_ settings."""
        given = {f"FLOPINJ_{name}": value for name, value in settings.items()}
        self.run_profiled([CLIENTS / client[0], *client[1:]], FLOPINJ_MODE=mode, FLOPINJ_FORCE=1,
                          **given)
        report = harness.reduce(self.trace, check=None)
        self.assert_balanced(report)
        self.assertEqual(report["ledger"][-1]["dropped"], 0)
        return report

    @staticmethod
    def passed_over(report):
        recorder, = report["recorders"]
        return recorder["passed_over"]

    @staticmethod
    def kernels(report):
        return {row["kernel"]: row["launches"] for row in report["kernels"]}


class Names(TestCase):
    """`graphs` launches dot(5), dot(9) and axpy twice, a graph of dot and axpy five times and a
    graph around that once."""

    def test_names(self):
        dot, axpy = {"dot": 10}, {"axpy": 8}
        for name, expected in (("dot", dot), ("regex:^d", dot), ("regex:x.y|nothing", axpy),
                               ("regex:o", dot), ("regex:^(dot|axpy)$", dot | axpy),
                               ("do", {}), ("regex:^ot", {})):
            with self.subTest(name):
                report = self.recorded("launch_client", "graphs", KERNEL_NAME=name)
                self.assertEqual(self.kernels(report), expected)
                self.assertEqual(self.passed_over(report), 18 - sum(expected.values()))

    def test_chosen_kernels_are_measured_among_others(self):
        report = self.recorded("launch_client", "graphs", mode="multiplex", KERNEL_NAME="dot")
        self.assert_all_counted(report, 10)
        flop = 4 * (5 + 9) + 3 * 10 + 2 * 18 + 10
        self.assertEqual(harness.precisions(report), {"fp32": flop})

    def test_times_of_others_match_nothing(self):
        report = self.recorded("launch_client", "graphs", mode="timing", KERNEL_NAME="axpy")
        self.assertEqual(self.kernels(report), {"axpy": 8})
        recorder, = report["recorders"]
        self.assertEqual((recorder["activity_records"], recorder["activity_unmatched"]), (18, 10))


class Numbers(TestCase):
    def test_skip_and_count(self):
        """`failed` makes ten launches of axpy, and as many that fail in between."""
        for skip, count, expected, passed in ((0, 4, 4, 0), (3, 4, 4, 3), (8, 4, 2, 8),
                                              (3, None, 7, 3), (10, 1, 0, 10)):
            with self.subTest((skip, count)):
                counted = {} if count is None else {"LAUNCH_COUNT": count}
                report = self.recorded("launch_client", "failed", LAUNCH_SKIP=skip, **counted)
                self.assertEqual(report["ledger"][-1]["launches"], expected)
                self.assertEqual(self.passed_over(report), passed)

    def test_a_launch_of_a_graph_is_one(self):
        """After the six eager launches, and after two graph launches of two kernels each."""
        report = self.recorded("launch_client", "graphs", LAUNCH_SKIP=8, LAUNCH_COUNT=3)
        self.assertEqual(self.kernels(report), {"dot": 3, "axpy": 3})
        self.assertEqual(self.passed_over(report), 6 + 4)

    def test_names_are_looked_at_first(self):
        report = self.recorded("launch_client", "graphs", KERNEL_NAME="axpy", LAUNCH_SKIP=1,
                               LAUNCH_COUNT=2)
        self.assertEqual(self.kernels(report), {"axpy": 2})
        # dot(5), dot(9), axpy, dot(5), dot(9); then axpy is recorded, and the graph's dot left out
        self.assertEqual(self.passed_over(report), 6)

    def test_threads_share_the_number(self):
        report = self.recorded("launch_client", "threads", LAUNCH_SKIP=100, LAUNCH_COUNT=150)
        self.assertEqual(report["ledger"][-1]["launches"], 150)

    def test_then_the_library_lies_dormant(self):
        env = injected_environment(self.trace, FLOPINJ_LAUNCH_COUNT=20, FLOPINJ_NO_CONTROL=1)
        with subprocess.Popen([str(CLIENTS / "launch_client"), "endless"], env=env, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as client:
            self.addCleanup(client.kill)
            give_up = time.monotonic() + PATIENCE_S
            report = {"processes": []}
            while [t["end"] for t in report["processes"]] != ["detach"]:
                self.assertLess(time.monotonic(), give_up)
                time.sleep(0.1)
                if self.trace.exists() and self.trace.stat().st_size:
                    report = harness.reduce(self.trace, check=None)
            self.assertIsNone(client.poll())
            client.kill()
            client.stderr.read()
        self.assertEqual(report["ledger"][-1]["launches"], 20)


class Ranges(TestCase):
    """nvtx_client launches axpy(i) in its i-th situation."""

    def test_ranges(self):
        for text, expected in (
                ("measured/", 40), ("before cuInit/", 1), ("before cuInit", 0),
                ("outer/", 2), ("outer]", 1), ("[outer", 2), ("gr\u00fc\u00df]", 1),
                ("[gr\u00fc\u00df", 0), ("outer/gr\u00fc\u00df", 1), ("gr\u00fc\u00df/outer", 0),
                ("[outer/*/gr\u00fc\u00df]", 1), ("outer/+/gr\u00fc\u00df", 0),
                ("registered/", 0), ("library@registered/", 2), ("library@[registered]", 2),
                ("inside/", 2), ("process", 2), ("process/", 0), ("worker/", 1), ("worker", 0),
                ("process,other", 0), ("process|worker/", 2), ("outer/|inside/|process", 6),
                (r"aten::mm\, sizes = \[\[4\, 4\]\, \[4\, 4\]\]/", 3), ("iteration 4999/", 1)):
            with self.subTest(text):
                report = self.recorded("nvtx_client", NVTX_INCLUDE=text)
                self.assertEqual(report["ledger"][-1]["launches"], expected)
                self.assertEqual(self.passed_over(report), NVTX_LAUNCHES - expected)

    def test_chosen_launches_are_measured_among_others(self):
        report = self.recorded("nvtx_client", mode="multiplex", NVTX_INCLUDE="measured/")
        self.assert_all_counted(report, 40)
        self.assertEqual(harness.precisions(report), {"fp32": 4 * 2 * 55})

    def test_ranges_are_looked_at_before_numbers(self):
        """Of axpy(2), (3), (6) and (7) the second and the third."""
        report = self.recorded("nvtx_client", NVTX_INCLUDE="outer/|inside/", LAUNCH_SKIP=1,
                               LAUNCH_COUNT=2)
        self.assertEqual({r["range"] for r in report["ranges"] if r["launches"]},
                         {"outer", "library:registered", "library:registered/inside"})
        self.assertEqual(report["ledger"][-1]["launches"], 2)


class CaptureRange(TestCase):
    """The client makes 5 launches before its first range, 7 of another size in it, 10 more after
    it."""

    def test_the_first_range(self):
        for _ in range(5):
            report = self.recorded("attach_client", "capture", mode="timing", **CAPTURE)
            self.assertEqual(report["ledger"][-1]["launches"], 7)
            self.assertEqual(self.passed_over(report), 0)
            process, = report["processes"]
            self.assertIn(process["end"], ("detach", "exit"))
            self.assertEqual(process["choice"], "--capture-range cudaProfilerApi")
            signature, = report["signatures"]
            self.assertEqual(signature["launches"], 7)

    def test_with_a_number(self):
        report = self.recorded("attach_client", "capture", LAUNCH_SKIP=2, LAUNCH_COUNT=3,
                               **CAPTURE)
        self.assertEqual(report["ledger"][-1]["launches"], 3)
        self.assertEqual(self.passed_over(report), 2)

    def test_a_program_without_a_range_has_no_trace(self):
        done = self.run_profiled([CLIENTS / "launch_client", "same_grid"],
                                 FLOPINJ_CAPTURE_RANGE="cudaProfilerApi")
        self.assertEqual(done.stderr, "")
        self.assertFalse(self.trace.exists())

    def test_a_trace_that_cannot_be_made(self):
        done = self.run_profiled([CLIENTS / "attach_client", "capture"], output="/nowhere/t.pb",
                                 FLOPINJ_CAPTURE_RANGE="cudaProfilerApi")
        self.assertRegex(done.stderr, r"^flopinj: [^\n]*/nowhere[^\n]*unprofiled\n$")


class Said(TestCase):
    def test_the_report_does_not_speak_of_all_launches(self):
        report = self.recorded("launch_client", "graphs", KERNEL_NAME="dot")
        self.assertEqual(report["processes"][0]["choice"], "--kernel-name dot")
        self.assertTrue(any("--kernel-name dot: 8 others" in row["notice"]
                            for row in report["notices"]))

    def test_without_a_choice_nothing_is_said_of_one(self):
        report = self.recorded("launch_client", "graphs")
        self.assertIsNone(report["processes"][0]["choice"])

    def test_what_is_not_understood_is_refused_in_one_line(self):
        refused = {
            "--kernel-name": ("", "regex:(", r"regex:gemm\d", "regex:(?:a)", r"regex:(a)\1"),
            "--kernel-name-base": ("demangled",),
            "--nvtx-include": ("regex:a/", "a@b@c/", "/", "a/,b", "*/a", "a|", "a\\", "@a/",
                               "a[1]/"),
            "--launch-skip": ("-1",), "--launch-count": ("0", "many"), "--capture-range": ("nvtx",)}
        for option, texts in refused.items():
            for text in texts:
                with self.subTest((option, text)):
                    done = harness.run([FLOPINJ, "run", "--simulate", option, text, "--", "true"],
                                       harness.clean_environment())
                    self.assertNotEqual(done.returncode, 0)
                    self.assertEqual(done.stdout, "")
                    self.assertIn(option, done.stderr.splitlines()[0])


class Training(TestCase):
    """The network has three layers with two parameters each, and two activations between them. In
    mode streams there are four of it."""

    STEPS, REPLICAS = 12, {"streams": 4}

    def test_weights(self):
        command = [TRAINER, "--steps", self.STEPS, "--model", "mlp", "--ranges", "pytorch"]
        plain_environment = {**harness.clean_environment(), "LD_LIBRARY_PATH": str(harness.SIMGPU)}
        for mode in ("plain", "autograd-thread", "graph", "streams"):
            plain = harness.run([*command, "--mode", mode], plain_environment)
            weights = re.findall(r"weights \S+", plain.stderr)
            self.assertEqual(len(weights), 1)
            steps = self.STEPS * self.REPLICAS.get(mode, 1)
            for settings, launches in (
                    ({"FLOPINJ_KERNEL_NAME": "sgd"}, 6 * steps),
                    ({"FLOPINJ_NVTX_INCLUDE": "step/forward"}, 5 * steps),
                    ({"FLOPINJ_LAUNCH_SKIP": 5, "FLOPINJ_LAUNCH_COUNT": 50}, 50),
                    ({"FLOPINJ_CAPTURE_RANGE": "cudaProfilerApi"}, None)):
                with self.subTest(settings=settings, mode=mode):
                    done = harness.run([*command, "--mode", mode],
                                       injected_environment(self.trace, **settings))
                    self.assertEqual(done.returncode, plain.returncode, done.stderr)
                    self.assertEqual(re.findall(r"weights \S+", done.stderr), weights)
                    if launches is not None and mode != "graph":
                        ledger = harness.reduce(self.trace, check=None)["ledger"][-1]
                        self.assertEqual(ledger["launches"], launches)
                    self.trace.unlink(missing_ok=True)


if __name__ == "__main__":
    harness.main()
