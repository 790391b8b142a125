"""The simulated clock: step time, idle time and HFU are those of the documented model, whatever the
program does on the host and however busy the machine is."""

import re
import subprocess
import sys
import unittest

import harness

PTX = harness.SOURCE / "tests" / "unit" / "simgpu" / "ptx" / "kernels.ptx"
README = harness.SOURCE / "tools" / "simgpu" / "README.md"
STEPS = 6
BIG, SMALL = 1 << 20, 1 << 10  # elements of clock_client's kernels

# The simulated GH100: multiply-adds and DRAM bytes of a nanosecond.
FMA_PER_NS = 132 * 128 * 1.98
BYTES_PER_NS = 3352


def host_costs():
    """Calls and what they cost, as the document has it."""
    rows = re.findall(r"^\| `(cu\w+)` \| ([\d,]+) \|", README.read_text(), re.MULTILINE)
    return {call: int(ns.replace(",", "")) for call, ns in rows}


def saxpy_ns(n):
    """Reads x and y and writes y: 12 bytes for each multiply-add."""
    return int(1500 + max(n / FMA_PER_NS, 12 * n / BYTES_PER_NS))


def host_copy_ns(n):
    return int(1000 + 4 * n / 55)


class Model:
    """One host thread and one stream, as in the documents: a call costs the host its time, work
    begins behind the stream's earlier work, and who waits goes on at its end."""

    def __init__(self):
        self.costs = host_costs()
        self.host = self.stream = 0
        self.kernels, self.copies, self.steps, self.calls = [], [], [], []

    def call(self, name):
        self.host += next(ns for call, ns in self.costs.items() if name.startswith(call))

    def work(self, ns):
        begin = max(self.host, self.stream)
        self.stream = begin + ns
        return begin, self.stream

    def wait(self):
        self.host = max(self.host, self.stream)

    def copy(self, n):
        self.call("cuMemcpyHtoD")
        self.copies.append(self.work(host_copy_ns(n)))
        self.wait()

    def copied(self, begin, end):
        """For how long a copy ran; none runs beside a kernel or another copy."""
        return sum(min(end, until) - max(begin, since) for since, until in self.copies
                   if max(begin, since) < min(end, until))

    def launch(self, n):
        self.call("cuLaunchKernel")
        self.calls.append(self.host)
        self.kernels.append(self.work(saxpy_ns(n)))

    def run(self, queries=0):
        for _ in range(2):
            self.call("cuMemAlloc")
        for _ in range(STEPS):
            begin = self.host
            for _ in range(queries):
                self.call("cuStreamQuery")
            self.copy(BIG)
            for n in (BIG, SMALL, SMALL):
                self.launch(n)
            self.call("cuCtxSynchronize")
            self.wait()
            self.copy(SMALL)
            self.steps.append(self.host - begin)
        for _ in range(2):
            self.call("cuMemFree")
        return self


class SimulatedClock(harness.TestCase):
    def record(self, sleep_ms=0, queries=0, **settings):
        self.run_profiled([harness.CLIENTS / "clock_client", PTX, STEPS, sleep_ms, queries],
                          FLOPINJ_FORCE=1, **settings)
        return harness.reduce(self.trace)

    @staticmethod
    def times(report):
        """All that is said on the simulated clock."""
        return {"time": [row for row in report["time"] if "real time" not in row["what"]],
                "hfu": report["figures"]["hfu"],
                **{key: report[key] for key in ("device_time", "idle_gaps", "steps")},
                "kernels": sorted((row["kernel"], row["gpu_time_ns"]) for row in report["kernels"])}

    def test_times_are_those_of_the_documented_model(self):
        model = Model().run()
        report = self.record()
        wall = harness.by(report, "steps")["wall time"]
        self.assertEqual([wall["min_ns"], wall["max_ns"]], [min(model.steps), max(model.steps)])
        busy = sum(end - begin for begin, end in model.kernels)
        first, last = model.kernels[0][0], model.kernels[-1][1]
        device, = report["device_time"]
        self.assertEqual(
            {key: device[key] for key in ("before_first_kernel_ns", "busy_ns", "idle_ns",
                                          "after_last_kernel_ns", "wall_ns")},
            {"before_first_kernel_ns": first, "busy_ns": busy, "idle_ns": last - first - busy,
             "after_last_kernel_ns": model.host - last, "wall_ns": model.host})
        figures = report["figures"]
        fma = STEPS * (BIG + 2 * SMALL)
        self.assertEqual(figures["flop"], 2 * fma)
        self.assertAlmostEqual(figures["hfu"], fma / FMA_PER_NS / model.host, delta=1e-9)
        self.assertAlmostEqual(figures["step_time"], sorted(model.steps)[STEPS // 2] / 1e9)

    def test_idle_time_of_a_late_host_is_in_the_range_that_it_was_in(self):
        queries, unit = 1000, 128
        model = Model().run(queries)
        report = self.record(queries=queries, FLOPINJ_HOST_TIMES=1)
        late = 0
        for (_, before), (begin, _), call in zip(model.kernels, model.kernels[1:],
                                                 model.calls[1:]):
            if begin - before >= ((begin - call) // unit + 1) * unit - 1:
                late += begin - before - model.copied(before, begin)
        self.assertGreater(late, (STEPS - 1) * queries * 500)
        lost = harness.by(report, "lost", "line")
        self.assertEqual(lost["idle_host_late"]["ns"], late)
        self.assertEqual(lost["idle_queued"]["ns"], 0)
        # In all steps but the first, before which no kernel has run; the unit rounds it down.
        self.assertEqual(report["lost_host"], [
            {"range": "step/data", "ns": (STEPS - 1) * (queries * 500 // unit) * unit}])

    def test_idle_time_in_which_the_gpu_waits_for_a_copy_is_said_to_be_so(self):
        model = Model().run()
        report = self.record()
        copied = model.copied(0, model.host)
        self.assertGreater(copied, STEPS * host_copy_ns(BIG))
        lost = harness.by(report, "lost", "line")
        self.assertEqual(lost["idle_copies"]["ns"], copied)
        busy = sum(end - begin for begin, end in model.kernels)
        self.assertEqual(lost["idle"]["ns"], model.host - busy)
        self.assertEqual(
            [{key: row[key] for key in ("direction", "copies", "bytes", "pageable_bytes", "ns")}
             for row in report["copies"]],
            [{"direction": direction, "copies": STEPS, "bytes": STEPS * 4 * n,
              "pageable_bytes": STEPS * 4 * n, "ns": STEPS * host_copy_ns(n)}
             for direction, n in (("host to device", BIG), ("device to host", SMALL))])

    def test_without_records_of_copies_their_time_is_idle_like_other(self):
        report = self.record(FLOPINJ_NO_COPIES=1)
        lost = harness.by(report, "lost", "line")
        self.assertEqual(lost["idle_copies"]["ns_at_least"], 0)
        self.assertEqual(report["copies"], [])

    def test_sums_of_copies_are_in_a_tally_and_in_a_summary(self):
        whole = self.record()["copies"]
        summary = self.trace.with_name("summary.pb")
        harness.run([harness.FLOPREDUCE, "merge", "-o", summary, self.trace],
                    harness.clean_environment())
        self.assertEqual(harness.reduce(summary)["copies"], whole)
        self.assertEqual(self.record(FLOPINJ_LEVEL="tally")["copies"], whole)

    def test_what_the_host_does_takes_no_time(self):
        self.assertEqual(self.times(self.record(sleep_ms=0)), self.times(self.record(sleep_ms=40)))

    def test_a_busy_machine_and_the_profiler_s_mode_change_nothing(self):
        alone = self.times(self.record(FLOPINJ_MODE="timing"))
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        try:
            for mode in ("timing", "multiplex", "full"):
                with self.subTest(mode=mode):
                    self.assertEqual({**self.times(self.record(FLOPINJ_MODE=mode)), "hfu": None},
                                     alone)  # without counters there is no HFU
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def test_reports_say_that_the_clock_is_simulated_and_where_counts_are_from(self):
        report = self.record()
        self.assertEqual([report["figures"][key] for key in ("simulated_clock", "ptx_counts")],
                         [True, True])
        text = harness.run([harness.FLOPREDUCE, self.trace], harness.clean_environment()).stdout
        self.assertEqual(text.count("simulated clock"), 1, text)
        self.assertIn("(simulated clock, PTX counts)", text.splitlines()[0])
        self.assertEqual(text.count("PTX counts: "), 1, text)


if __name__ == "__main__":
    harness.main()
