"""Prometheus scrapes `flopinj metrics`, and each query of examples/prometheus, of its rules and of
its dashboard, has an answer there."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

import harness
from attaching import Attach, ask

UNPACKED = harness.SOURCE / "build" / "prometheus" / "usr" / "bin" / "prometheus"
PROGRAM = UNPACKED if UNPACKED.exists() else shutil.which("prometheus")
FILES = harness.SOURCE / "examples" / "prometheus"
FLOP_OF_A_LAUNCH = 32  # of launch_client's kernel


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Prometheus(Attach):
    def setUp(self):
        super().setUp()
        self.port, served = free_port(), free_port()
        self.client = self.endless(FLOPINJ_JOB="nightly", FLOPINJ_LABEL="team=vi\"sion", RANK="3",
                                   FLOPINJ_MEASURE_RANKS="all")
        self.spawn([harness.FLOPINJ, "metrics", "--port", served, "--every", "0.2",
                    self.client.pid])
        config = (FILES / "prometheus.yml").read_text()
        config = config.replace("9178", str(served)).replace("15s", "1s")
        (self.folder / "prometheus.yml").write_text(config)
        rules = (FILES / "rules.yml").read_text().replace("[5m]", "[10s]")
        (self.folder / "rules.yml").write_text(rules)
        self.spawn([PROGRAM, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                    f"--web.listen-address=127.0.0.1:{self.port}"])

    def spawn(self, command):
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGTERM)

    def query(self, text):
        url = (f"http://127.0.0.1:{self.port}/api/v1/query?" +
               urllib.parse.urlencode({"query": text}))
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                return []
            raise AssertionError(f"{text}: {error.read().decode()}") from None
        except urllib.error.URLError:
            return []

    def test_every_query_of_the_examples_has_an_answer(self):
        ask(self.client.pid, "start")
        board = json.loads((FILES / "dashboard.json").read_text())
        queries = [target["expr"].replace("$job_id", "nightly").replace("$__rate_interval", "10s")
                   for panel in board["panels"] for target in panel["targets"]]
        queries += re.findall(r"record: (\S+)", (FILES / "rules.yml").read_text())
        # The program has no operators with shapes, so there is no formula, and all is counted.
        without = [query for query in queries if re.search("mfu|at_least", query)]
        self.assertEqual(len(without), 3)
        for query in queries:
            if query in without:
                self.assertEqual(self.query(query), [], query)
            else:
                with self.subTest(query=query):
                    self.wait_for(lambda: self.query(query))

    def test_values_are_those_of_the_recording(self):
        output = ask(self.client.pid, "start")["output"]
        self.wait_for(lambda: float(ask(self.client.pid, "status").get("covered", 0)) == 1)
        ask(self.client.pid, "stop")
        launches = harness.reduce(output)["ledger"][-1]["launches"]

        def scraped():
            return [float(row["value"][1]) for row in self.query("flopinj_launches_total")]

        self.wait_for(lambda: scraped() == [launches])
        flop, = self.query("flopinj_flop_total")
        self.assertEqual(float(flop["value"][1]), FLOP_OF_A_LAUNCH * launches)
        labels = flop["metric"]
        self.assertEqual({key: labels[key] for key in ("Hostname", "rank", "job_id", "label_team",
                                                       "phase")},
                         {"Hostname": socket.gethostname(), "rank": "3", "job_id": "nightly",
                          "label_team": "vi\"sion", "phase": "other"})
        self.assertRegex(labels["UUID"], r"^GPU-[0-9a-f]{8}-")
        self.assertNotIn("pid", labels)  # a run that goes on after a restart keeps its series


if __name__ == "__main__":
    if PROGRAM is None:
        print("skipped: no Prometheus; `tools/dev test` brings it", file=sys.stderr)
        sys.exit(77)
    harness.main()
