#!/usr/bin/env python3
"""Recordings of torch.profiler and Nsight Systems: what flopreduce says of them is what their
events say, worked out by kineto_oracle.py.

Usage: import_test.py BUILD [UNITTEST ARGUMENTS]

FLOPINJ_RECORDINGS names a folder with files of real GPUs, which are checked likewise."""

import ast
import csv
import gzip
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import kineto_oracle  # noqa: E402
import made_files  # noqa: E402

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


class Files(unittest.TestCase):
    build = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopinj-import-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, program, *arguments, code=0):
        done = subprocess.run([self.build / "bin" / program, *map(str, arguments)],
                              capture_output=True, check=False, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done

    def report(self, *arguments, code=0):
        done = self.run_program("flopreduce", "--format", "json", *arguments, code=code)
        return json.loads(done.stdout)

    def file(self, name, text):
        path = self.folder / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def check(self, report, recording, products=True, ledger=True):
        """Every figure that the recording itself says."""
        self.assertEqual(report["damage"], [])
        for ordinal, expected in recording.devices().items():
            device = next(d for d in report["device_time"] if d["ordinal"] == ordinal)
            self.assertEqual(device["launches_placed"], expected["launches"])
            self.assertEqual(device["kernel_sum_ns"], expected["kernel_sum_ns"])
            self.assertEqual(device["busy_ns"], expected["busy_ns"])
            told = [c for c in report["communication"] if c["ordinal"] == ordinal]
            self.assertEqual(sum(c["exposed_ns"] for c in told), expected["alone_ns"])
            self.assertEqual(sum(c["hidden_ns"] for c in told), expected["hidden_ns"])
        copies = [sum(c[key] for c in report["copies"]) for key in ("copies", "ns", "bytes")]
        self.assertEqual(copies, list(recording.copy_sums()))
        without = sum(p["launches"] for p in report["phases"] if p["phase"] == "unknown")
        self.assertEqual(without + recording.collectives_without_call(),
                         recording.without_call())
        steps = recording.steps()
        summary = report["step_summary"]
        self.assertEqual(summary[0]["count"] if summary else 0, len(steps))
        if products:
            places = [p for p in report["operator_places"]
                      if p["range"].split(", ")[0] in PRODUCTS]
            self.assertEqual(sum(p["formula_flop"] for p in places),
                             recording.outermost_products())
        if ledger:
            self.check_ledger(report)

    def check_ledger(self, report):
        """The lines at the top of the ledger are all of the devices' time."""
        top = [line for line in report["lost"] if line["parent"] is None]
        known = sum(line["ns"] for line in top if line["ns"] is not None)
        self.assertEqual(known, report["lost_capacity"][0]["capacity_ns"])


class Made(Files):
    def test_all_spellings_and_orders(self):
        for seed in range(24):
            digits, spelling = (0, 3, 3)[seed % 3], seed % len(made_files.SPELLINGS)
            program = made_files.Program(seed, digits, spelling, devices=1 + seed % 2)
            text = program.text(header_last=seed % 4 == 0, bare=seed % 5 == 4,
                                indent=(None, 1)[seed // 2 % 2])
            name = f"t{seed}.pt.trace.json" + (".gz" if seed % 3 == 1 else "")
            with self.subTest(seed=seed, name=name):
                path = self.file(name, text)
                recording = kineto_oracle.Recording(path)
                report = self.report(path)
                self.check(report, recording)
                process = report["processes"][0]
                self.assertEqual(process["imported_from"], "torch.profiler")
                self.assertEqual(process["pid"], program.pid)
                if seed % 5 != 4:
                    self.assertEqual({d["device"] for d in report["devices"]},
                                     {"NVIDIA A100-SXM4-80GB"})
                notices = " ".join(n["notice"] for n in report["notices"])
                self.assertEqual("in whole microseconds" in notices, digits == 0, notices)
                self.check_rough_times(path, digits == 0)

    def check_rough_times(self, path, rough):
        """Of a clock of whole microseconds times below 50 are marked, and of another one no more
        than medians are."""
        text = self.run_program("flopreduce", "--sections", "kernels", path).stdout.decode()
        times = re.findall(r"(~ )?(\d[\d.]*) (ns|us)\b", text[text.index("  kernel "):])
        few = [time for time in times if time[2] == "ns" or float(time[1]) < 50]
        self.assertNotEqual(few, [])
        self.assertEqual(any(mark == "" for mark, *_ in few), not rough, few)
        self.assertTrue(any(mark == "" for mark, *_ in times), times)

    def test_the_same_program_by_nsight_systems(self):
        for seed in range(8):
            with self.subTest(seed=seed):
                program = made_files.Program(seed, devices=1 + seed % 2)
                path = self.file("p.json", program.text())
                database = self.folder / f"p{seed}.sqlite"
                program.database(database)
                recording = kineto_oracle.Recording(path)
                by_kineto, by_nsys = self.report(path), self.report(database)
                self.check(by_nsys, recording)
                for table in ("phases", "kernels", "layers", "copies", "steps", "device_time"):
                    self.assertEqual(self.plain(by_nsys[table]), self.plain(by_kineto[table]),
                                     table)

    def test_sampled_gpu_metrics(self):
        program = made_files.Program(2)
        database = self.folder / "p.sqlite"
        program.database(database)
        kernels = [e for e in program.events if e.get("cat") == "kernel"]
        begin = min(int(k["ts"] * 1000) for k in kernels)
        end = max(int((k["ts"] + k["dur"]) * 1000) for k in kernels)
        import sqlite3
        with sqlite3.connect(database) as db:
            db.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, metricId INTEGER, "
                       "metricName TEXT)")
            db.execute("CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, "
                       "metricId INTEGER, value INTEGER)")
            names = ("GPC Clock Frequency [MHz]", "SMs Active [Throughput %]",
                     "Tensor Active [Throughput %]")
            db.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (7, ?, ?)",
                           enumerate(names))
            db.executemany("INSERT INTO GPU_METRICS VALUES (?, 256, ?, ?)", [
                (begin - 1, 1, 0), (begin, 1, 40), (begin + 9, 1, 41), (end, 1, 41),
                (end + 1, 1, 0), (begin + 9, 2, 5), (begin + 9, 0, 99)])
        db.close()
        messages = [d["message"] for d in self.report(database)["diagnostics"]]
        self.assertEqual(messages, ["sampled from the first kernel to the last, GPU 0: "
                                    "multiprocessors active 40.7 % (3 samples), "
                                    "tensor cores active 5.0 % (1 samples)"])

    @staticmethod
    def plain(table):
        """Rows without the formula's precision, which Nsight Systems does not know."""
        left_out = ("utilization", "of_peak", "byte", "bound", "why", "trace")
        return [{key: value for key, value in row.items()
                 if not any(word in key for word in left_out)} for row in table]

    def test_ranks_are_one_job_and_a_file_given_twice_counts_once(self):
        paths = [self.file(f"rank{rank}.json", made_files.Program(rank, ranks=(rank, 2)).text())
                 for rank in range(2)]
        both, twice = self.report(*paths), self.report(*paths, paths[0])
        self.assertEqual([p["rank"] for p in both["processes"]], [0, 1])
        self.assertEqual(len(both["runs"]), 1)
        self.assertEqual(both["odd_ranks"], [])
        self.assertEqual(len(twice["processes"]), 2)
        launches = sum(len(kineto_oracle.Recording(path).kernels) for path in paths)
        for report in (both, twice):
            self.assertEqual(report["figures"]["launches"], launches)

    def test_a_trace_and_its_summary_say_the_same(self):
        path = self.file("t.json", made_files.Program(3).text())
        self.run_program("flopinj", "import", path, "-o", "t.pb")
        self.assertEqual(self.report("t.pb")["phases"], self.report(path)["phases"])
        self.run_program("flopreduce", "merge", "-o", "t.sum", path)
        summary, trace = self.report("t.sum"), self.report(path)
        for table in ("phases", "kernels", "lost", "layers", "communication", "copies", "steps"):
            self.assertEqual(summary[table], trace[table], table)

    def test_import_writes_a_folder(self):
        names = ("a.pt.trace.json.gz", "b.json")
        for seed, name in enumerate(names):
            self.file(name, made_files.Program(seed).text())
        done = self.run_program("flopinj", "import", *names, "-o", "traces")
        self.assertEqual(sorted(p.name for p in (self.folder / "traces").iterdir()),
                         ["a.pb", "b.pb"])
        self.assertEqual(len(done.stderr.decode().splitlines()), 2)
        done = self.run_program("flopinj", "import", *names, "-o", "traces", code=1)
        self.assertIn("--force", done.stderr.decode())

    def test_the_gpu_that_the_file_does_not_name(self):
        program = made_files.Program(1)
        del program.members["deviceProperties"]
        self.file("t.json", program.text())
        self.run_program("flopinj", "import", "--gpu", "NVIDIA H100 80GB HBM3", "t.json", "-o",
                         "t.pb")
        self.assertEqual(self.report("t.pb")["peak_devices"][0]["device"],
                         "NVIDIA H100 80GB HBM3")

    def test_what_would_name_operators(self):
        program = made_files.Program(3, threads=1)
        for event in program.events:
            event["args"].pop("Input Dims", None)
        done = self.run_program("flopreduce", self.file("t.json", program.text()))
        self.assertIn("torch.profiler with record_shapes=True", done.stdout.decode())

    def test_modules_are_layers_and_the_forward_pass(self):
        program = made_files.Program(2, threads=1)
        spans = [e for e in program.events if e["ph"] == "X" and e["cat"] in ("cpu_op",)]
        begin, end = (min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans))
        for name, before in (("nn.Module: Net_0", 2), ("nn.Module: Linear_0", 1),
                             ("torch/nn/modules/linear.py(114): forward", 1)):
            program.events.append({"ph": "X", "cat": "python_function", "name": name,
                                   "pid": program.pid, "tid": program.pid, "ts": begin - before,
                                   "dur": end - begin + 2 * before, "args": {}})
        report = self.report(self.file("t.json", program.text()))
        self.assertIn("nn.Module: Linear_0", {layer["layer"].split("/")[0]
                                              for layer in report["layers"]})
        phases = {p["phase"]: p["launches"] for p in report["phases"]}
        self.assertNotIn("other", phases)
        self.assertGreater(phases["forward"], 0)

    def test_bus_bandwidth_is_that_of_nccl_tests(self):
        """Bytes and factors by hand: S / t x 2 (n - 1) / n of all-reduces, (n - 1) / n of gathers,
        1 of broadcasts."""
        events, now = [], 1000
        of = (  # name, elements in and out, type, ranks, us, bytes, bytes/s on the bus
            ("allreduce", 1_000_000, 1_000_000, "Float", 8, 100, 4_000_000, 4e10 * 2 * 7 / 8),
            ("allreduce", 1_000_000, 1_000_000, "Float", 8, 300, 4_000_000, None),
            ("_allgather_base", 1000, 8000, "Half", 8, 10, 16_000, 1.6e9 * 7 / 8),
            ("reduce_scatter", 8000, 4000, "BFloat16", 2, 10, 16_000, 1.6e9 / 2),
            ("broadcast", 500, 500, "Double", 4, 10, 4000, 4e8),
            ("wait", 500, 500, "Byte", 4, 10, 500, None),
            ("allreduce", 10, 10, "Int", 1, 10, 40, None))
        for number, (name, into, out, element, ranks, us, *_) in enumerate(of, 1):
            place = {"device": 0, "context": 1, "stream": 7, "correlation": number}
            args = {"Collective name": name, "In msg nelems": into, "Out msg nelems": out,
                    "dtype": element, "Group size": ranks}
            for category, of_event, begin, takes, given in (
                    ("cpu_op", "record_param_comms", now, 20, args),
                    ("user_annotation", f"nccl:{name}", now + 3, 12, {}),
                    ("cuda_runtime", "cudaLaunchKernel", now + 5, 5, {"correlation": number}),
                    ("kernel", "ncclDevKernel_X", now + 20, us, place)):
                events.append({"ph": "X", "cat": category, "name": of_event, "pid": 5, "tid": 5,
                               "ts": f"{begin}.000", "dur": takes, "args": given})
            now += 500
        text = re.sub(r'"ts": "([0-9.]+)"', r'"ts": \1', json.dumps({"traceEvents": events}))
        told = {(row["collective"], row["ranks"], row["message_bytes"]):
                row["bus_byte_per_s"]
                for row in self.report(self.file("t.json", text))["collectives"]}
        expected = {(name, ranks, size): rate for name, _, _, _, ranks, _, size, rate in of}
        expected["allreduce", 8, 4_000_000] = 8_000_000 / 400e-6 * 2 * 7 / 8  # both together
        self.assertEqual(set(told), set(expected))
        for key, rate in expected.items():
            if rate is None:
                self.assertIsNone(told[key], key)
            else:
                self.assertAlmostEqual(told[key] / rate, 1, places=9, msg=key)

    def test_a_file_that_is_cut_off_is_used_as_far_as_it_goes(self):
        program = made_files.Program(4)
        text = program.text(header_last=True, order="by time")
        whole = self.report(self.file("whole.json", text))
        cut = self.report(self.file("cut.json", text[:len(text) * 2 // 3]))
        self.assertLess(cut["figures"]["launches"], whole["figures"]["launches"])
        self.assertGreater(cut["figures"]["launches"], 0)
        self.assertEqual([d["code"] for d in cut["diagnostics"]], ["import.cut"])

    def test_events_that_cannot_be_read_are_counted(self):
        program = made_files.Program(5)
        launches = len([e for e in program.events if e.get("cat") == "kernel"])
        text = program.text(bare=True)
        bad = '{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon", "dur": 1, "args": {}}'
        report = self.report(self.file("t.json", text[:-1] + f", {bad}, {bad}]"))
        self.assertEqual(report["figures"]["launches"], launches)
        self.assertEqual([(d["code"], d["times"]) for d in report["diagnostics"]],
                         [("import.unreadable", 2)])

    def test_a_device_of_any_number(self):
        program = made_files.Program(5)
        kernels = [e for e in program.events if e.get("cat") == "kernel"]
        for kernel in kernels:
            kernel["args"]["device"] = 2**32 - 2
        report = self.report(self.file("t.json", program.text()))
        self.assertEqual(report["figures"]["launches"], len(kernels))
        self.assertEqual(report["damage"], [])

    def test_other_files_get_one_line(self):
        program = made_files.Program(6)
        cases = {
            "no.json": ('{"a": 1}', "no list of trace events"),
            "list.json": ("[1, 2, 3]", "no event of torch.profiler"),
            "text.json": ("{ not json", "no list of trace events"),
            "deep.json": ("[" * 100_000, "no event of torch.profiler"),
            "empty.json": ("", "is empty"),
            "cpu.json": (json.dumps([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1,
                                      "tid": 1, "ts": 1, "dur": 1}]), "ProfilerActivity.CUDA"),
            "other.sqlite": (None, "none of nsys export"),
        }
        for name, (text, said) in cases.items():
            path = self.folder / name
            if text is None:
                import sqlite3
                with sqlite3.connect(path) as database:
                    database.execute("CREATE TABLE t (a)")
                database.close()
            else:
                path.write_text(text)
            with self.subTest(name):
                done = self.run_program("flopinj", "import", name, "-o", "x.pb", code=1)
                self.assertIn(said, done.stderr.decode())
                self.assertEqual(len(done.stderr.decode().splitlines()), 1)
                self.assertFalse((self.folder / "x.pb").exists())
                if text != "":
                    done = self.run_program("flopreduce", name, code=5)
                    self.assertIn(said, done.stderr.decode())
        for name, said in (("r.nsys-rep", "nsys export"), ("r.ncu-rep", "ncu --import")):
            self.file(name, b"\x00\x01binary")
            done = self.run_program("flopinj", "import", name, "-o", "x.pb", code=1)
            self.assertIn(said, done.stderr.decode())
        damaged = self.folder / "damaged.sqlite"
        program.database(damaged)
        data = bytearray(damaged.read_bytes())
        data[4096:-4096] = bytes(len(data) - 8192)
        damaged.write_bytes(data)
        done = self.run_program("flopinj", "import", "damaged.sqlite", "-o", "x.pb", code=1)
        self.assertEqual(len(done.stderr.decode().splitlines()), 1)


class Shipped(Files):
    """The recording that comes with flopinj: what `flopinj demo` has written, by zstd -19."""

    def test_it_is_whole_and_says_what_it_is(self):
        path = Path(__file__).resolve().parents[2] / "examples/gpt-simulated.pb.zst"
        report = self.report(path)
        self.assertEqual(report["damage"], [])
        self.assertEqual(report["figures"]["launches"], 2120)
        self.assertEqual(report["ledger"][0]["measured"], 2120)
        self.check_ledger(report)
        first = self.run_program("flopreduce", path).stdout.decode().splitlines()[0]
        self.assertTrue(first.startswith("SIMULATED by simgpu"), first)


class Counted(Files):
    """Counters that Nsight Compute has printed."""

    LAUNCHES = [("void lib::gemm<float, (int)4>(T1 *, int)", (4, 2, 1), (128, 1, 1), 0, ()),
                ("relu_kernel", (7, 1, 1), (256, 1, 1), 0, ()),
                ("relu_kernel", (7, 1, 1), (256, 1, 1), 1, ()),
                ("void lib::gemm<float, (int)4>(T1 *, int)", (4, 2, 1), (128, 1, 1), 0, ()),
                ("ampere_sgemm_32x128_nn", (9, 1, 1), (64, 1, 1), 1, ())] * 3

    def test_forms_and_languages(self):
        for seed, (form, language) in enumerate((f, m) for f in ("wide", "long")
                                                for m in made_files.LANGUAGES):
            counters = made_files.Counters(seed, self.LAUNCHES, tensor=True)
            name = "c.csv" + (".gz" if seed % 3 == 2 else "")
            with self.subTest(form=form, language=language):
                report = self.report(self.file(name, counters.text(form, language)))
                self.assertEqual(report["damage"], [])
                self.assertEqual(report["processes"][0]["imported_from"], "Nsight Compute")
                self.assertEqual(report["processes"][0]["pid"], 4711)
                self.check_kernels(report, counters)
                self.assertEqual(report["figures"]["flop"],
                                 sum(map(counters.flop, range(len(self.LAUNCHES)))))
                self.assertEqual(report["figures"]["dram_bytes"],
                                 sum(v[m] for v in counters.values for m in made_files.BYTES))
                for device in (0, 1):
                    self.assertEqual(sum(launch[3] == device for launch in self.LAUNCHES),
                                     report["devices"][device]["launches"])
                if form == "wide":
                    self.assertEqual({d["device"] for d in report["devices"]},
                                     {"NVIDIA A100-SXM4-80GB"})

    def check_kernels(self, report, counters, key="flop"):
        self.assertEqual({kernel["kernel"] for kernel in report["kernels"]},
                         {name for name, *_ in counters.launches})
        for kernel in report["kernels"]:
            expected = [counters.flop(i) for i, launch in enumerate(counters.launches)
                        if kernel["kernel"] == launch[0]]
            self.assertEqual(kernel["launches"], len(expected))
            if None not in expected:
                self.assertEqual(kernel[key], sum(expected))

    def test_what_was_not_read_is_not_0(self):
        counters = made_files.Counters(3, self.LAUNCHES, tensor=True)
        for launch, metric in ((0, list(made_files.SASS)[4]), (2, made_files.TENSOR)):
            counters.values[launch][metric] = None
        report = self.report(self.file("c.csv", counters.text()))
        self.assertEqual(report["figures"]["unmeasured_launches"], 2)
        self.assertEqual(report["figures"]["flop_at_least"], sum(
            flop for flop in map(counters.flop, range(len(self.LAUNCHES))) if flop is not None))
        # Half instructions may hold moves, and tensor cores were not looked at.
        counters = made_files.Counters(4, self.LAUNCHES)
        for values in counters.values:
            values[counters.HALF[0]] = 1000
        report = self.report(self.file("h.csv", counters.text()))
        self.assertIsNone(report["figures"]["flop"])
        self.assertEqual(report["figures"]["unscreened_launches"], len(self.LAUNCHES))

    def test_a_file_without_the_counters_that_flop_need(self):
        counters = made_files.Counters(5, self.LAUNCHES, tensor=True)
        few = counters.metrics
        counters.metrics = [made_files.PIPE, made_files.TENSOR, *list(made_files.SASS)[:8]]
        cases = [("few.csv", counters.text(), "_hfma_"), ("none.csv", "==PROF== nothing\n", "ncu")]
        counters.metrics = few
        rounded = counters.text().replace('"inst"', '"Ginst"')
        cases.append(("rounded.csv", rounded, "--print-units base"))
        mixed = counters.text("long", "de", words=False) + counters.text("long", words=False)
        cases.append(("mixed.csv", mixed, "LC_ALL=C"))
        cases.append(("empty.csv", counters.text().split('"0",')[0], "no kernel"))
        for name, text, said in cases:
            with self.subTest(name):
                done = self.run_program("flopreduce", self.file(name, text), code=5)
                self.assertIn(said, done.stderr.decode())
                self.assertEqual(len(done.stderr.decode().splitlines()), 1)

    def test_counts_by_the_multiprocessor_are_the_same(self):
        counters = made_files.Counters(6, self.LAUNCHES)
        text = counters.text().replace("smsp__sass_", "sm__sass_")
        report = self.report(self.file("c.csv", text))
        self.check_kernels(report, counters, "flop_at_least")  # tensor cores were not looked at

    def test_ranges(self):
        launches = [("k", (1, 1, 1), (32, 1, 1), 0, ranges) for ranges in (
            ("step", "aten::mm, seq = 7, op_id = 3, sizes = [[2, 3], [3, 4]]"),
            ("step", "autograd::engine::evaluate_function: MmBackward0",
             "MmBackward0, seq = 7, op_id = 9"),
            ("step", 'a "name": with :colons:'), ())]
        counters = made_files.Counters(7, launches, tensor=True)
        report = self.report(self.file("c.csv", counters.text(nvtx=True)))
        phases = {p["phase"]: p["flop"] for p in report["phases"]}
        self.assertEqual(phases, {"forward": counters.flop(0), "backward": counters.flop(1),
                                  "other": counters.flop(2) + counters.flop(3)})
        self.assertEqual(report["step_summary"][0]["count"], 0)  # nobody knows when they began
        self.assertEqual([p["formula_flop"] for p in report["operator_places"]
                          if p["range"].startswith("aten::mm")], [2 * 2 * 3 * 4])

    def test_times_of_one_and_counters_of_the_other(self):
        for seed in range(6):
            with self.subTest(seed=seed):
                program = made_files.Program(seed, devices=1 + seed % 2, threads=1)
                counters = made_files.Counters.of(program, seed, tensor=True)
                times = self.file("t.json", program.text())
                csv = self.file("c.csv", counters.text(("wide", "long")[seed % 2]))
                recording = kineto_oracle.Recording(times)
                report = self.report(times, "--counters", csv)
                # The FLOP are made up: what was padding and what the model's nobody knows.
                self.check(report, recording, ledger=False)
                self.assertEqual(report["figures"]["flop"],
                                 sum(map(counters.flop, range(len(counters.launches)))))
                self.check_kernels(report, counters)
                launches = len(counters.launches)
                self.assertIn(f"{launches} of {launches} launches",
                              report["diagnostics"][0]["message"])
                self.run_program("flopinj", "import", times, "--counters", csv, "-o",
                                 f"{seed}.pb")
                self.assertEqual(self.report(f"{seed}.pb")["kernels"], report["kernels"])

    def test_kernels_that_are_not_as_many_have_no_counters(self):
        program = made_files.Program(3, threads=1)
        counters = made_files.Counters.of(program, tensor=True)
        gone = counters.launches[0]
        kept = [i for i, launch in enumerate(counters.launches) if launch[:4] != gone[:4]]
        counters.launches.append(gone)
        counters.values.append(counters.values[0])
        path = self.file("t.json", program.text())
        report = self.report(path, "--counters", self.file("c.csv", counters.text()))
        self.assertEqual(report["figures"]["flop_at_least"], sum(map(counters.flop, kept)))
        everything = len(counters.launches) - 1
        self.assertEqual(report["figures"]["unmeasured_launches"], everything - len(kept))
        self.assertIn(f"{len(kept)} of {everything} launches",
                      report["diagnostics"][0]["message"])

    def test_instances_of_one_template(self):
        """Profilers print types of their own way; which is which their order shows."""
        program = made_files.Program(3, threads=1)
        kernels = [e for e in program.events if e.get("cat") == "kernel"]
        for i, kernel in enumerate(kernels):
            kernel["args"]["grid"] = [1, 1, 1]
            kernel["name"] = f"void (anonymous namespace)::k<{i % 2}, float*>(float*)"
        counters = made_files.Counters.of(program, tensor=True)
        spelled = {name: name.replace("(anonymous namespace)", "<unnamed>").replace(
            "<0", "<(int)0").replace("<1", "<(int)1") for name, *_ in counters.launches}
        path = self.file("t.json", program.text())
        counters.launches = [(spelled[name], *rest) for name, *rest in counters.launches]
        report = self.report(path, "--counters", self.file("c.csv", counters.text()))
        for kernel in report["kernels"]:
            number = "(int)" + kernel["kernel"].split("<")[-1][0]
            self.assertEqual(kernel["flop"], sum(
                counters.flop(i) for i, launch in enumerate(counters.launches)
                if number in launch[0]))
        counters.launches.reverse()  # then their order is another one, and shows nothing
        if [n for n, *_ in counters.launches] != [n for n, *_ in reversed(counters.launches)]:
            done = self.run_program("flopreduce", path, "--counters",
                                    self.file("r.csv", counters.text()), code=5)
            self.assertIn("no kernel was launched as often", done.stderr.decode())

    def test_counters_that_cannot_be_used(self):
        program = made_files.Program(3)
        path = self.file("t.json", program.text())
        csv = self.file("c.csv", made_files.Counters(1, self.LAUNCHES).text())
        trace = self.folder / "t.pb"
        self.run_program("flopinj", "import", path, "-o", trace)
        for recording, counters, said in (
                (path, csv, "no kernel was launched as often"), (path, path, "ncu's CSV"),
                (path, "nowhere.csv", "No such file"), (csv, csv, "it has counters itself"),
                (trace, csv, "--counters are for a recording of")):
            with self.subTest(said):
                done = self.run_program("flopreduce", recording, "--counters", counters, code=5)
                self.assertIn(said, done.stderr.decode())
                self.assertEqual(len(done.stderr.decode().splitlines()), 1)


class Recorded(Files):
    """Files of real GPUs."""

    def recordings(self):
        folder = os.environ.get("FLOPINJ_RECORDINGS")
        if not folder:
            self.skipTest("no recordings of real GPUs; FLOPINJ_RECORDINGS=FOLDER names them")
        return Path(folder)

    def test_gradients_of_a_convolution_are_those_that_it_was_asked_for(self):
        """The first layer's call computes no gradient by its input, the second's both."""
        y, x, w = [2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3]
        one = 2 * math.prod(y) * math.prod(w[1:])
        events = []

        def add(category, name, tid, at, took, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid,
                           "ts": at, "dur": took, "args": args})

        for call, mask in enumerate(("[False, True, True]", "[True, True, False]")):
            at = 100 * call
            concrete = ["[4]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask]
            add("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", 1, at, 60)
            add("cpu_op", "aten::convolution_backward", 1, at + 1, 50,
                **{"Input Dims": [y, x, w] + [[]] * 8, "Concrete Inputs": [""] * 3 + concrete})
            add("cuda_runtime", "cudaLaunchKernel", 1, at + 10, 5, correlation=call + 1)
            add("kernel", "some_kernel", 7, at + 20, 9, device=0, stream=7, correlation=call + 1)
        report = self.report(self.file("t.json", json.dumps({"traceEvents": events})))
        row, = report["operators"]
        self.assertEqual((row["calls"], row["formula_flop"], row["model_flop"]),
                         (2, 4 * one, 3 * one))

    def test_tracelens_counts_the_same_products(self):
        """AMD's TraceLens on the same two files, operator by operator and shape by shape. It counts
        a bias as an addition for each output, and of causal attention half of all pairs, without
        the half of the diagonal (docs/why-numbers-differ.md)."""
        whole = 0
        for name in ("h100-bert-inference", "h100-qwen-inference"):
            theirs = [row for part in ("GEMM", "SDPA_fwd")
                      for path in [self.recordings() / f"{name}.tracelens-{part}.csv"]
                      if path.exists()
                      for row in csv.DictReader(path.read_text().splitlines())]
            if not theirs:
                continue
            products, attention = 0, 0
            for row in theirs:
                flop, calls = round(float(row["GFLOPS_first"]) * 1e9), int(row["name_count"])
                sizes = ast.literal_eval(row["Input Dims_first"])
                if "attention" in row["name"]:
                    batch, heads, queries, width = sizes[0]
                    if row["param: causal"] == "True":
                        flop += 2 * batch * heads * queries * width
                    attention += flop * calls
                    continue
                if row["name"] == "aten::addmm":
                    flop -= sizes[1][0] * sizes[2][1]
                products += flop * calls
            report = self.report(self.recordings() / f"{name}.json.gz")
            ours = {row["operator"]: row["formula_flop"] for row in report["operators"]}
            self.assertEqual(sum(ours.get(operator) or 0 for operator in (
                "aten::linear", "aten::matmul", "aten::bmm", "aten::mm")), products)
            self.assertEqual(ours["aten::scaled_dot_product_attention"], attention)
            whole += 1
        if whole == 0:
            self.skipTest("no files of TraceLens")

    def test_alexnet_of_an_a100_with_counters(self):
        """Two forward passes of AlexNet, 128 images, whose counters of FP32 and FP16 instructions
        Kineto's range profiler read: what tests/hardware/counts.md says of them."""
        path = self.recordings() / "a100-alexnet-counters.json.gz"
        if not path.exists():
            self.skipTest(f"{path} is not there")
        report = self.report(path)
        precisions = {p["precision"]: p["flop_at_least"] for p in report["precisions"]}
        # Tensor cores ran and their counters were not asked for: a lower bound, and never 0.
        self.assertEqual(precisions, {"fp32": 79_679_454_712, "fp16": 0})
        ranges = {r["name"]: r for r in report["ranges"]}
        second = ranges["[param|pytorch.model.alex_net|0|0|0|measure|forward]"]
        self.assertEqual(second["flop_at_least"], 39_800_995_580)
        # Packed half instructions that only move constants: as many may be work, and none is.
        self.assertEqual(second["flop_doubtful"], 541_851_648)
        kernels = {}
        for kernel in report["kernels"]:
            kernels[kernel["kernel"].split("<")[0]] = kernel["flop_at_least"]
        outputs, images = 128 * 64 * 55 * 55, 128
        # conv1: K of 3 x 11 x 11 = 363 in whole steps of 8, and alpha for each output.
        self.assertEqual(kernels["void implicit_convolve_sgemm"], 2 * outputs * 368 + outputs)
        # fc6, fc7 and fc8, twice; what a sliced K, alpha, beta and N of 1,024 for 1,000 add.
        products = 2 * images * (9216 * 4096 + 4096 * 4096 + 4096 * 1000)
        counted = kernels["ampere_sgemm_32x32_sliced1x4_tn"]
        self.assertEqual(counted, 30_160_191_488)
        self.assertLess(2 * products, counted)
        self.assertLess(counted, 1.01 * 2 * products)

    def test_the_bus_bandwidth_of_an_all_gather_on_a_b200(self):
        path = self.recordings() / "b200-serving.json.gz"
        if not path.exists():
            self.skipTest(f"{path} is not there")
        row, = self.report(path)["collectives"]
        # 201,088 values of 2 bytes of eight ranks in 21.953 us.
        self.assertEqual((row["message_bytes"], row["ranks"]), (402_176, 8))
        self.assertAlmostEqual(row["bus_byte_per_s"], 402_176 / 21.953e-6 * 7 / 8, delta=1e3)

    def test_their_own_figures(self):
        folder = self.recordings()
        paths = sorted(folder.glob("*.json*"))
        self.assertNotEqual(paths, [])
        for path in paths:
            recording = kineto_oracle.Recording(path)
            if recording.kernels:
                with self.subTest(path.name):
                    self.check(self.report(path), recording, products=False)


if __name__ == "__main__":
    Files.build = Path(sys.argv.pop(1)).resolve()
    unittest.main()
