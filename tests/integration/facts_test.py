"""Tables of what single processes did: rows, step_list, processes, paths. What is in them follows
from the shapes of the trainer's layers, however the recordings are joined."""

import csv
import io
import json
import sqlite3
from collections import Counter

import harness
from harness import read_varint
from theory import step_launches

STEPS = 12


def crc32c(data):
    """By the definition (RFC 3720): reflected, polynomial 0x82f63b78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def as_rank(trace, rank):
    """The trace as another process of the job would have written it: of two fields of one message
    the later one counts, so the header gets more of them."""
    size, at = read_varint(trace, 1)
    packet, rest = trace[at:at + size - 5], trace[at + size:]
    header_size, at = read_varint(packet, 1)
    header, others = packet[at:at + header_size], packet[at + header_size:]
    host = f"node{rank // 8}".encode()
    header += (b"\x20" + varint(1000 + rank) + b"\x2a" + varint(len(host)) + host + b"\x38" +
               varint(rank) + b"\x89\x01" + (rank + 1).to_bytes(8, "little"))
    packet = packet[:1] + varint(len(header)) + header + others
    packet += b"\x7d" + crc32c(packet).to_bytes(4, "little")
    return b"\x0a" + varint(len(packet)) + packet + rest


def flop(row):
    return int(row["flop"] or 0)


class Facts(harness.TestCase):
    def train(self, *arguments, steps=STEPS, batch=8, model="mlp", **settings):
        done = self.run_profiled([harness.TRAINER, "--print-shapes", "--batch", batch, "--model",
                                  model, "--steps", steps, *arguments], FLOPINJ_FORCE=1,
                                 **settings)
        return json.loads(done.stdout)

    def text(self, table, *inputs, options=()):
        done = harness.run([harness.FLOPREDUCE, "--format", "csv", "--table", table, *options,
                            *inputs], harness.clean_environment(), check=True)
        return done.stdout

    def table(self, table, *inputs, options=()):
        return list(csv.DictReader(io.StringIO(self.text(table, *inputs, options=options))))

    def merge(self, name, *inputs):
        out = self.folder / name
        harness.run([harness.FLOPREDUCE, "merge", "--force", "-o", out, *inputs],
                    harness.clean_environment(), check=True)
        return out

    def test_rows_are_the_launches_of_theory(self):
        for mode in ("plain", "autograd-thread", "graph", "streams"):
            for level in ("launches", "tally"):
                with self.subTest(mode=mode, level=level):
                    shapes = self.train("--mode", mode, FLOPINJ_LEVEL=level)
                    expected, launches = Counter(), Counter()
                    for phase, layer, kernel, value in step_launches(shapes):
                        expected[phase, kernel] += value * STEPS * shapes["workers"]
                        launches[phase, kernel] += STEPS * shapes["workers"]
                    rows = self.table("rows", self.trace)
                    found, counted = Counter(), Counter()
                    for row in rows:
                        kernel = row["kernel"].split("(")[0].split("::")[-1]
                        found[row["phase"], kernel] += flop(row)
                        counted[row["phase"], kernel] += int(row["launches"])
                    self.assertEqual(+found, +expected)
                    self.assertEqual(counted, launches)
                    by_thread = {}
                    for row in rows:
                        of = by_thread.setdefault(row["thread_name"], [0, 0])
                        of[0] += int(row["launches"])
                        of[1] += flop(row)
                    self.assertEqual({row["thread_name"]: [int(row["launches"]), flop(row)]
                                      for row in self.table("threads", self.trace)}, by_thread)
                    report = harness.reduce(self.trace)
                    self.assertEqual(sum(map(flop, rows)), int(report["figures"]["flop_exact"]))
                    summary = self.merge("one.sum", self.trace)
                    for table in ("rows", "threads", "paths", "lost", "lost_parts"):
                        self.assertEqual(self.text(table, summary), self.text(table, self.trace))

    def test_layers_and_paths(self):
        shapes = self.train(model="cnn")
        expected = Counter()
        for phase, layer, _, value in step_launches(shapes):
            if phase in ("forward", "backward"):
                expected[phase, layer] += value * STEPS
        found = Counter()
        rows = self.table("rows", self.trace)
        for row in rows:
            if row["phase"] in ("forward", "backward"):
                found[row["phase"], row["layer"].split(":")[-1]] += flop(row)
        self.assertEqual(+found, +expected)
        paths = {(p["range"], p["phase"]): p for p in self.table("paths", self.trace)}
        launches = Counter()
        for row in rows:
            self.assertEqual(paths[row["range"], row["phase"]]["layer"], row["layer"])
            launches[row["range"], row["phase"]] += int(row["launches"])
        self.assertEqual(launches, {key: int(p["launches"]) for key, p in paths.items()})

    def test_one_spelling_of_hashes_and_sessions(self):
        self.train()
        report = harness.reduce(self.trace)
        hashes = {s["stable_hash"] for s in report["signatures"]}
        rows = self.table("rows", self.trace)
        self.assertEqual({row["stable_hash"] for row in rows}, hashes)
        base = self.folder / "report.sqlite"
        harness.run([harness.FLOPREDUCE, "--format", "sqlite", "-o", base, self.trace],
                    harness.clean_environment(), check=True)
        with sqlite3.connect(base) as database:
            of = lambda sql: database.execute(sql).fetchall()
            self.assertEqual({h for h, in of("SELECT stable_hash FROM rows")}, hashes)
            self.assertEqual({h for h, in of("SELECT stable_hash FROM signatures")}, hashes)
            self.assertEqual(of("SELECT sum(flop) FROM rows"),
                             [(int(report["figures"]["flop_exact"]),)])
            self.assertEqual(of("SELECT count(*) FROM rows JOIN processes USING (session)"),
                             [(len(rows),)])
            each = harness.exact(report["step_summary"][0], "flop_each")
            self.assertEqual(of("SELECT count(*), sum(flop) FROM step_list"),
                             [(STEPS, each * STEPS)])
        done = harness.run([harness.FLOPREDUCE, "query", "--format", "csv",
                            "SELECT count(*) AS n FROM rows", self.trace],
                           harness.clean_environment(), check=True)
        self.assertEqual(done.stdout.split()[1], str(len(rows)))

    def test_steps_are_those_of_theory_and_survive_a_summary(self):
        shapes = self.train("--mode", "autograd-thread")
        launches = step_launches(shapes)
        steps = self.table("step_list", self.trace)
        self.assertEqual([int(s["number"]) for s in steps], list(range(1, STEPS + 1)))
        for step in steps:
            self.assertEqual(int(step["launches"]), len(launches))
            self.assertEqual(flop(step), sum(value for *_, value in launches))
            self.assertEqual((step["range"], step["every"]), ("step", "1"))
            if step["gpu_time_ns"] and not step["gpu_time_ns_mark"]:  # no launch was measured
                self.assertLessEqual(int(step["busy_ns"]), int(step["gpu_time_ns"]))
            self.assertLessEqual(int(step["busy_ns"]), int(step["wall_ns"]))
        begins = [int(s["begin_ns"]) for s in steps]
        self.assertEqual(begins, sorted(begins))
        process, = self.table("processes", self.trace)
        self.assertLessEqual(int(process["begin_ns"]), begins[0])
        self.assertLessEqual(begins[-1] - int(process["begin_ns"]), int(process["wall_ns"]))
        summary = self.merge("one.sum", self.trace)
        again = self.merge("two.sum", summary)
        for source in (summary, again):
            self.assertEqual(self.text("step_list", source), self.text("step_list", self.trace))

    def test_steps_of_one_stream_are_busy_for_the_sum_of_their_kernels(self):
        self.train(FLOPINJ_MODE="timing")
        for step in self.table("step_list", self.merge("one.sum", self.trace)):
            self.assertEqual(step["busy_ns"], step["gpu_time_ns"])
            self.assertEqual((step["gpu_time_ns_mark"], step["flop"]), ("", ""))

    def test_a_summary_keeps_at_most_1024_steps(self):
        shapes = self.train(batch=1, steps=2500)
        each = sum(value for *_, value in step_launches(shapes))
        steps = self.table("step_list", self.merge("one.sum", self.trace))
        self.assertEqual([int(s["number"]) for s in steps], list(range(1, 2501, 4)))
        self.assertEqual({(flop(s), s["every"]) for s in steps}, {(each, "4")})
        whole = {s["number"]: s for s in self.table("step_list", self.trace)}
        self.assertEqual(len(whole), 2500)
        for step in steps:
            self.assertEqual({**step, "every": "1"}, whole[step["number"]])

    def test_two_thousand_ranks(self):
        ranks = 200 if harness.SANITIZER_PRELOAD else 2000
        shapes = self.train(batch=1)
        each = STEPS * sum(value for *_, value in step_launches(shapes))
        trace = self.trace.read_bytes()
        files = []
        for rank in range(ranks):
            files.append(self.folder / f"rank{rank}.pb")
            files[-1].write_bytes(as_rank(trace, rank))
        left = self.merge("left.sum", *files[:ranks // 3])
        right = self.merge("right.sum", *files[ranks // 3:])
        summary = self.merge("all.sum", right, left)
        rows = self.table("rows", summary)
        self.assertEqual(sum(map(flop, rows)), ranks * each)
        of_rank = Counter()
        for row in rows:
            of_rank[row["session"], row["rank"], row["hostname"], row["pid"]] += flop(row)
        self.assertEqual(of_rank, {(f"{rank + 1:016x}", str(rank), f"node{rank // 8}",
                                    str(1000 + rank)): each for rank in range(ranks)})
        self.assertEqual(self.table("figures", summary)[0]["flop"], str(ranks * each))
        self.assertEqual(len(self.table("step_list", summary)), ranks * STEPS)
        few = files[:40]
        self.assertEqual(self.text("rows", *few), self.text("rows", self.merge("few.sum", *few)))

    def test_many_ranks_are_quantiles_and_those_with_most_time(self):
        shapes = self.train(batch=1)
        each = STEPS * sum(value for *_, value in step_launches(shapes))
        usual = self.trace.read_bytes()
        self.train(batch=1, steps=2 * STEPS)
        files = []
        for rank in range(70):
            files.append(self.folder / f"rank{rank}.pb")
            longer = rank in (13, 40)
            files[-1].write_bytes(as_rank(self.trace.read_bytes() if longer else usual, rank))
        spread = {row["quantile"]: flop(row) for row in self.table("rank_spread", *files)}
        self.assertEqual(spread, {"min": each, "5 %": each, "median": each, "95 %": each,
                                  "max": 2 * each})
        done = harness.run([harness.FLOPREDUCE, "--all", "--top", 3, *files],
                           harness.clean_environment(), check=True)
        self.assertIn("Across 70 processes", done.stdout)
        most = [line for line in done.stdout.splitlines() if line.startswith("  Most GPU time: ")]
        self.assertEqual(len(most), 5)
        self.assertEqual({line.split(",")[0] for line in most[:2]},
                         {"  Most GPU time: rank 13", "  Most GPU time: rank 40"})
        self.assertNotIn("Slow: ", done.stdout)  # they have more work
        for title in ("By process", "The profiler's own cost"):
            table = done.stdout.split(title)[1].split("\n\n")[0]
            self.assertIn("and 67 more: --top N", table)
        few = harness.run([harness.FLOPREDUCE, "--all", *files[:64]], harness.clean_environment(),
                          check=True)
        self.assertNotIn("Across", few.stdout)

    def test_processes(self):
        self.train(FLOPINJ_NO_COMMAND_LINE="1")
        process, = self.table("processes", self.trace)
        report = harness.reduce(self.trace)
        self.assertEqual(process["command_line"], "")
        self.assertEqual(process["damage"], "")
        self.assertEqual((process["devices"], process["coverage"]), ("1", "1"))
        self.assertEqual(process["flop"], report["figures"]["flop_exact"])
        self.assertLess(0, float(process["hfu"]))
        whole = self.trace.read_bytes()
        self.trace.write_bytes(whole[:-20])
        done = harness.run([harness.FLOPREDUCE, "--format", "csv", "--table", "processes",
                            self.trace], harness.clean_environment())
        self.assertEqual(done.returncode, 3)
        process, = csv.DictReader(io.StringIO(done.stdout))
        self.assertIn("torn_tail", process["damage"])
        self.assertEqual(process["end"], "")

    def job(self, **variables):
        self.train(steps=2, **variables)
        process, = self.table("processes", self.trace)
        source = harness.reduce(self.trace)["processes"][0]
        self.assertEqual(source["job_id"] or "", process["job_id"])
        return process["job_id"], source["job_id_source"]

    def test_the_job_is_the_one_that_the_scheduler_or_the_user_names(self):
        self.assertEqual(self.job(), ("", ""))
        for variable in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
                         "TORCHELASTIC_RUN_ID"):
            self.assertEqual(self.job(**{variable: "4711"}), ("4711", variable))
        self.assertEqual(self.job(TORCHELASTIC_RUN_ID="none"), ("", ""))
        both = {"SLURM_JOB_ID": "4711", "TORCHELASTIC_RUN_ID": "a"}
        self.assertEqual(self.job(**both), ("4711", "SLURM_JOB_ID"))
        self.assertEqual(self.job(**both, FLOPINJ_JOB="llama 7b"), ("llama 7b", "FLOPINJ_JOB"))
        done = harness.run([harness.FLOPREDUCE, self.merge("one.sum", self.trace)],
                           harness.clean_environment(), check=True)
        self.assertIn(", job llama 7b, 1 x simgpu", done.stdout)
        hidden = self.folder / "hidden.pb"
        harness.run([harness.FLOPREDUCE, "anonymize", "-o", hidden, self.trace],
                    harness.clean_environment(), check=True)
        self.assertNotIn(b"llama", hidden.read_bytes())
        process, = self.table("processes", hidden)
        self.assertTrue(process["job_id"].startswith("job-"), process["job_id"])

    def labels(self, *traces):
        return {(row["name"], row["value"], row["source"])
                for row in self.table("labels", *traces)}

    def test_labels_are_of_the_scheduler_and_of_the_user(self):
        self.train(steps=2)
        self.assertEqual(self.labels(self.trace), set())
        slurm = {"SLURM_CLUSTER_NAME": "alps", "SLURM_JOB_USER": "ada", "SLURM_JOB_ACCOUNT": "g1",
                 "SLURM_JOB_PARTITION": "normal", "SLURM_JOB_NAME": "llama 7b"}
        names = ("cluster", "user", "account", "partition", "job_name")
        self.train(steps=2, **slurm)
        by_slurm = {(name, value, source) for name, (source, value) in zip(names, slurm.items())}
        self.assertEqual(self.labels(self.trace), by_slurm)
        self.train(steps=2, **slurm, FLOPINJ_LABEL="team=vision,account=a=b,note=")
        given = {(name, value, "FLOPINJ_LABEL")
                 for name, value in (("team", "vision"), ("account", "a=b"), ("note", ""))}
        both = given | {label for label in by_slurm if label[0] != "account"}
        self.assertEqual(self.labels(self.trace), both)
        self.assertEqual(self.labels(self.merge("one.sum", self.trace)), both)
        hidden = self.folder / "hidden.pb"
        harness.run([harness.FLOPREDUCE, "anonymize", "-o", hidden, self.trace],
                    harness.clean_environment(), check=True)
        for word in (b"alps", b"ada", b"vision"):
            self.assertNotIn(word, hidden.read_bytes())


if __name__ == "__main__":
    harness.main()
