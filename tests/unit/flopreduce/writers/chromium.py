"""Headless Chromium, driven over its DevTools pipe: no port is opened, and nothing but Python's
library is needed."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None)


class Chromium:
    """One page. `requests`, `problems` and `dialogs` hold what it asked for, complained of and
    opened."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="flopreduce-chromium-",
                                                   ignore_cleanup_errors=True)
        in_read, self.to_browser = os.pipe()
        self.from_browser, out_write = os.pipe()
        self.number, self.buffer, self.events = 0, b"", []
        self.requests, self.problems, self.dialogs = [], [], []
        command = [
            PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking",
            "--disable-component-update", "--remote-debugging-pipe",
            f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "about:blank"
        ]

        def fds():  # the browser reads commands from 3 and writes answers to 4
            os.dup2(in_read, 200)
            os.dup2(out_write, 201)
            os.dup2(200, 3)
            os.dup2(201, 4)

        self.process = subprocess.Popen(command, preexec_fn=fds, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(in_read)
        os.close(out_write)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Errors that only the page sees, such as of observers that notice what they changed.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="window.pageErrors = [];"
                  "addEventListener('error', (event) => window.pageErrors.push(event.message));")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close", patience=10)
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.profile.cleanup()

    def call(self, method, patience=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + patience
        while True:
            answer = self.receive(end - time.monotonic())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.notice(answer)

    def receive(self, patience):
        while b"\0" not in self.buffer:
            if patience <= 0 or not select.select([self.from_browser], [], [], patience)[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def notice(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(parameters["args"])
        elif method == "Log.entryAdded":
            self.problems.append(parameters["entry"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])

    def look(self, width=1280, height=900, theme="light", media=""):
        """Size of the window; "light" or "dark"; "print" for how it is on paper."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, path, fragment=""):
        self.requests.clear()
        url = str(path) if str(path).startswith("about:") else f"file://{path}"
        self.call("Page.navigate", url=f"{url}#{fragment}" if fragment else url)
        self.wait("document.readyState === 'complete'")

    def run(self, expression):
        """The value of a JavaScript expression, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression, patience=60):
        end = time.monotonic() + patience
        while not self.run(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {expression}")
            time.sleep(0.05)

    def point(self, selector):
        """Moves the pointer to the middle of an element; the place on the screen."""
        x, y = self.run(
            f"""(() => {{
            const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}});
            const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()"""
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector):
        """A real click in the middle of an element."""
        x, y = self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frames()

    def frames(self):
        """Until what was done is on the screen."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key):
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38,
                "ArrowRight": 39, "ArrowDown": 40}[key]
        text = {"text": "\r"} if key == "Enter" else {}  # what a button takes for a click
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key,
                  windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key,
                  windowsVirtualKeyCode=code)
        self.frames()
