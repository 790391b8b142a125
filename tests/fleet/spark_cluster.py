"""A standalone cluster of Spark on this machine: a master and two workers on loopback."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


def environment(folder, packages):
    return {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")} | {
        "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_DIRS": str(folder), "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(packages)}


class Cluster:
    def __init__(self, folder, packages):
        self.folder, self.processes = folder, []
        self.environment = environment(folder, packages)
        self.submit_options = [
            "--conf", "spark.executor.memory=700m", "--conf", "spark.driver.memory=700m",
            "--conf", f"spark.executorEnv.PYTHONPATH={packages}",
            "--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"]

    def start(self):
        log = self.daemon("master", "org.apache.spark.deploy.master.Master", "--port", "0")
        self.master = self.wait_for(log, r"Starting Spark master at (spark://\S+)")
        for number in range(2):
            log = self.daemon(f"worker{number}", "org.apache.spark.deploy.worker.Worker",
                              self.master, "--cores", "1", "--memory", "1g")
            self.wait_for(log, "(Successfully registered with master)")

    def daemon(self, name, kind, *options):
        log = self.folder / f"{name}.log"
        with open(log, "wb") as file:
            self.processes.append(subprocess.Popen(
                [HOME / "bin/spark-class", kind, "--host", "127.0.0.1", "--webui-port", "0",
                 *options], env=self.environment, cwd=self.folder, stdout=file, stderr=file,
                start_new_session=True))
        return log

    def wait_for(self, log, pattern, seconds=90):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, log.read_text(errors="replace"))):
            if time.monotonic() > end or self.processes[-1].poll() is not None:
                raise AssertionError(log.read_text(errors="replace"))
            time.sleep(0.1)
        return found[1]

    def submit(self, *words):
        return subprocess.Popen(
            [HOME / "bin/spark-submit", "--master", self.master, *self.submit_options,
             *map(str, words)], env=self.environment, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def executors(self):
        """Process ids, of this cluster only: those below its workers."""
        return [pid for worker in self.processes[1:] for pid in self.below(worker.pid)]

    def below(self, pid):
        found = []
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in task.read_text().split():
                command = Path(f"/proc/{child}/cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in command:
                    found.append(int(child))
                found += self.below(child)
        return found

    def stop(self):
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def cluster(folder, packages):
    folder.mkdir()
    made = Cluster(folder, packages)
    try:
        made.start()
        yield made
    finally:
        made.stop()
