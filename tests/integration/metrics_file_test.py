"""--metrics-file: what a node exporter reads of a recording while it goes on."""

import subprocess
import unittest
import urllib.error
import urllib.request

import harness
from attaching import Attach, ask
from prometheus_client.parser import text_string_to_metric_families
from prometheus_test import free_port

PROGRAMS = harness.SOURCE / "build" / "prometheus" / "usr" / "bin"
WATTS = 400  # of the simulated board


def parsed(text):
    """Values by name and labels."""
    return {(sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


def comments(text):
    return {line for line in text.splitlines() if line.startswith("#")}


class MetricsFile(Attach):
    def begin(self, name="%r.prom", **settings):
        self.file = self.folder / "3.prom"
        self.client = self.endless(FLOPINJ_METRICS_FILE=self.folder / name, RANK="3",
                                   FLOPINJ_JOB="nightly", FLOPINJ_LABEL='team=vi"sion',
                                   **settings)
        self.labels = (("job_id", "nightly"), ("label_team", 'vi"sion'),
                       ("pid", str(self.client.pid)), ("rank", "3"))

    def test_the_values_are_those_of_a_status_and_go_with_the_recording(self):
        self.begin()
        self.assertFalse(self.file.exists())
        for number in (1, 2):
            ask(self.client.pid, "start")
            self.wait_for(self.file.exists)
            first = int(ask(self.client.pid, "status")["launches"])

            def launches():
                return parsed(self.file.read_text())["flopinj_launches_total", *self.labels]

            self.wait_for(lambda: launches() > first)
            text = self.file.read_text()
            values = parsed(text)
            after = ask(self.client.pid, "status")
            for key, name in (("launches", "launches_total"), ("seconds", "recording_seconds"),
                              ("trace_bytes", "trace_bytes")):
                value = values[f"flopinj_{name}", *self.labels]
                self.assertGreater(value, 0)
                self.assertLessEqual(value, float(after[key]))
            self.assertEqual(values["flopinj_recordings_total", *self.labels], number)
            self.assertEqual(values["flopinj_recording", *self.labels], 1)
            device = (("device", "0"), *self.labels)
            energy = values["flopinj_energy_joules_total", *device]
            self.assertGreater(energy, 0)
            self.assertAlmostEqual(values["flopinj_power_watts", *device], WATTS,
                                   delta=WATTS * 0.001 / energy)
            # Names, kinds and help are those of `flopinj metrics`, which has more.
            asked = harness.run([harness.FLOPINJ, "metrics", self.client.pid],
                                harness.clean_environment(), check=True).stdout
            self.assertLess(comments(text), comments(asked))
            self.assertEqual({name for name, *_ in values},
                             {name for name, *_ in parsed(asked)} &
                             {name for name, *_ in values})
            if (PROGRAMS / "promtool").exists():
                checked = subprocess.run([PROGRAMS / "promtool", "check", "metrics"], input=text,
                                         text=True, capture_output=True)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))
            ask(self.client.pid, "stop")
            self.assertEqual([file.name for file in self.folder.glob("*prom*")], [])

    def test_it_goes_with_the_program(self):
        done = self.run_profiled([harness.TRAINER, "--steps", 50],
                                 FLOPINJ_METRICS_FILE=self.folder / "%p.prom")
        self.assertNotIn("flopinj", done.stderr)
        self.assertEqual(list(self.folder.glob("*prom*")), [])

    def test_what_cannot_be_written_is_said_once_and_counted(self):
        self.begin("none/%r.prom")
        trace = ask(self.client.pid, "start")["output"]

        def messages():
            return [row["message"] for row in harness.reduce(trace, check=None)["diagnostics"]
                    if row["code"] == "metrics.file"]

        self.wait_for(messages)
        ask(self.client.pid, "stop")
        self.assertRegex(messages()[0], "^cannot write .*No such file or directory")
        self.client.kill()
        said = self.client.stderr.read().splitlines()
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], r"cannot write .*/none/3\.prom: No such file or directory$")

    @unittest.skipUnless((PROGRAMS / "prometheus-node-exporter").exists(), "no node exporter")
    def test_a_node_exporter_serves_it(self):
        self.begin()
        port = free_port()
        exporter = subprocess.Popen(
            [PROGRAMS / "prometheus-node-exporter", "--collector.disable-defaults",
             "--collector.textfile", f"--collector.textfile.directory={self.folder}",
             f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
        self.addCleanup(exporter.wait)
        self.addCleanup(exporter.kill)
        ask(self.client.pid, "start")

        def served():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                    text = page.read().decode()
            except urllib.error.URLError:
                return None
            values = parsed(text)
            return ("flopinj_launches_total", *self.labels) in values and (text, values)

        text, values = self.wait_for(served)
        self.assertEqual(values["node_textfile_scrape_error",], 0)
        self.assertLess(comments(self.file.read_text()), comments(text))


if __name__ == "__main__":
    harness.main()
