"""The HTML page in a real browser: it draws to scale, sorts, zooms and filters, asks for nothing,
complains of nothing, stays small in the document with 50,000 rows, and runs nothing that a name in
a trace may hold."""

import json
import math
import re
import sys
import time
import unittest
from collections import Counter

import chromium
from made_traces import FOLDER, report, run, trace
from report_tables import by, exact, known

KERNELS = "table[data-key=kernels]"


def cells(browser, column):
    """Of the kernels in view. Column 0 in full: a name is shown without what all names share."""
    text = "title" if column == 0 else "textContent"
    return browser.run(f"[...document.querySelectorAll('{KERNELS} tbody tr:not(.space)')]"
                       f".map((row) => row.cells[{column}].{text})")


def frames(browser):
    return browser.run("[...document.querySelectorAll('.frame')].map((f) => "
                       "[f.textContent, f.getBoundingClientRect().width, f.title])")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(chromium.Chromium())

    def open(self, name, *options):
        page = FOLDER / f"{name}.html"
        done = run("--format", "html", "--force", "-o", page, *options, trace(name))
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.show(page)
        return page

    def show(self, page):
        self.browser.open(page)
        self.browser.wait("document.documentElement.dataset.ready === 'true'")
        self.assertEqual(self.browser.requests, [f"file://{page}"])

    def open_changed(self, name, change, *options):
        """A page whose data change() has changed."""
        before, data, after = re.split(r'(?<=id="data">)(.*?)(?=</script>)',
                                       self.open(name, *options).read_text(), maxsplit=1)
        data = json.loads(data)
        change(data)
        page = FOLDER / "changed_data.html"
        page.write_text(before + json.dumps(data).replace("<", "\\u003c") + after)
        self.show(page)

    def tearDown(self):
        problems, self.browser.problems = self.browser.problems, []  # the next test has its own
        self.assertEqual(problems, [])
        self.assertEqual(self.browser.run("window.pageErrors"), [])
        self.assertEqual(self.browser.dialogs, [])
        self.assertEqual(len(self.browser.requests), 1, self.browser.requests)  # the page itself

    def test_it_draws_what_the_json_report_says(self):
        self.open("training")
        expected = report("training")
        kernels = sorted(expected["kernels"], key=lambda k: -(k["gpu_time_ns"] or 0))
        self.assertEqual(cells(self.browser, 0), [k["kernel"] for k in kernels])
        columns = self.browser.run(f"[...document.querySelectorAll('{KERNELS} th')]"
                                   ".map((head) => head.textContent)")
        of = {head: columns.index(head) for head in ("FLOP", "launches", "GPU time")}
        self.assertEqual(cells(self.browser, of["launches"]), [str(k["launches"]) for k in kernels])
        # The same words for numbers as on a terminal.
        text = run("--color", "never", "--all", trace("training")).stdout.decode()
        for kernel, flop, duration in zip(
                *(cells(self.browser, c) for c in (0, of["FLOP"], of["GPU time"]))):
            line = next(line for line in text.splitlines() if line.strip().startswith(kernel))
            self.assertIn(f" {flop} ", line)
            self.assertIn(f" {duration}", line)
        shares = self.browser.run(
            "[...document.querySelector('.bar[aria-label$=FLOP]').children].map((part) => "
            "part.getBoundingClientRect().width)"
        )
        phases = {row["phase"]: known(row) for row in expected["phases"]}
        self.assertEqual(len(shares), sum(flop > 0 for flop in phases.values()))
        ratio = max(shares) / sorted(shares)[-2]
        self.assertAlmostEqual(ratio,
                               max(phases.values()) / sorted(phases.values())[-2], delta=0.05)
        # The collective has no FLOP count.
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.figure dd.tone-warn')]"
                                          ".map((dd) => dd.previousSibling.textContent)"),
                         ["Coverage"])

    def test_nothing_complains_at_any_width(self):
        for name in ("training", "simulated"):
            self.open(name)
            for width in (390, 900, 1400, 1920, 1280):
                self.browser.look(width=width)
                self.browser.run("new Promise((done) => requestAnimationFrame(() => "
                                 "requestAnimationFrame(() => requestAnimationFrame(done))))")
                self.assertEqual(self.browser.run("window.pageErrors"), [], (name, width))

    def test_a_click_on_a_heading_sorts(self):
        self.open("training")
        flop = {k["kernel"]: exact(k) for k in report("training")["kernels"]}
        at = self.browser.run(f"[...document.querySelectorAll('{KERNELS} th')].findIndex("
                              "(head) => head.textContent === 'FLOP') + 1")
        heading = f"{KERNELS} th:nth-child({at}) button"
        self.browser.click(heading)
        order = cells(self.browser, 0)
        measured = [flop[name] for name in order if flop[name] is not None]
        self.assertEqual(measured, sorted(measured, reverse=True))
        self.assertIsNone(flop[order[-1]])  # what is not known is last either way
        self.browser.click(heading)
        order = cells(self.browser, 0)
        measured = [flop[name] for name in order if flop[name] is not None]
        self.assertEqual(measured, sorted(measured))
        self.assertIsNone(flop[order[-1]])
        self.assertEqual(
            self.browser.run(f"document.querySelector('{KERNELS} th:nth-child({at})').ariaSort"),
            "ascending")
        self.browser.click(f"{KERNELS} th:first-child button")
        self.assertEqual(cells(self.browser, 0), sorted(flop))

    def test_frames_are_as_wide_as_their_work_and_zoom(self):
        self.open("training")
        self.browser.click("button[data-weight=flop]")
        self.browser.wait("[...document.querySelectorAll('.frame')].some((f) => "
                          "f.textContent === 'layer:fc1')")
        width = {text: w for text, w, _ in frames(self.browser)}
        ranges = by(report("training"), "ranges")
        work = {path.split("/")[-1]: known(row) for path, row in ranges.items()}
        for name in ("forward", "backward", "layer:fc1"):
            self.assertAlmostEqual((width[name] + 1) / (width["step"] + 1),
                                   work[name] / work["step"], delta=0.01)
        whole = width["step"]
        self.browser.run(
            "[...document.querySelectorAll('.frame')].find((f) => f.textContent === "
            "'forward').dataset.mark = 1"
        )
        self.browser.click(".frame[data-mark]")
        zoomed = {text: w for text, w, _ in frames(self.browser)}
        self.assertAlmostEqual(zoomed["forward"], whole, delta=1)
        self.assertNotIn("backward", zoomed)
        self.assertAlmostEqual(zoomed["layer:fc1"] + 1,
                               (whole + 1) * work["layer:fc1"] / work["forward"], delta=1)
        self.browser.press("Escape")
        self.browser.press("Escape")
        self.assertIn("backward", {text for text, _, _ in frames(self.browser)})
        self.browser.click("button[data-weight=launches]")
        width = {text: w for text, w, _ in frames(self.browser)}
        self.assertAlmostEqual((width["forward"] + 1) / (width["step"] + 1),
                               ranges["step/forward"]["launches"] / ranges["step"]["launches"],
                               delta=0.01)

    def circles(self):
        """Of the roofline, by kernel: place in the drawing, radius and class."""
        rows = [k["kernel"] for k in self.by_time]
        return {
            rows[int(row)]: rest for row, *rest in self.browser.run(
                "[...document.querySelectorAll('#roofline .point')].map((p) => [p.dataset.row, "
                "p.cx.baseVal.value, "
                "p.cy.baseVal.value, p.r.baseVal.value, p.getAttribute('class')])")
        }

    def scale(self, axis, card="#roofline"):
        """Of an axis: pixel by value, at its lines."""
        return self.browser.run(f"[...document.querySelectorAll('{card} .grid.{axis}')].map((l) => "
                                f"[Number(l.dataset.value), l.{axis}1.baseVal.value])")

    def pixel(self, axis, value):
        """Where a value belongs on a logarithmic axis, by its outermost lines; those between are
        checked."""
        lines = self.scale(axis)
        (low, first), (high, last) = lines[0], lines[-1]
        self.assertGreaterEqual(math.log10(high / low), 1)
        at = lambda v: first + (last - first) * math.log(v / low) / math.log(high / low)
        for line, place in lines:
            self.assertAlmostEqual(place, at(line), delta=0.5)
        return at(value)

    def vectors(self):
        """The roofline of the matrix-vector product, by theory: (FLOP, bytes, ns) of each
        kernel."""
        n = 20000
        self.open("vectors", "--peak", "fp32=50T", "--peak", "memory=5T")
        self.by_time = sorted(report("vectors")["kernels"], key=lambda k: -k["gpu_time_ns"])
        return {
            "matrix_vector": (2 * n * n - n, 4 * n * n + 8 * n, 400_000),
            "outer_product": (n * n, 4 * n * n + 8 * n, 410_000),
            "row_sum": (n * n - n, 4 * n * n + 4 * n, 390_000)
        }

    def unfold(self, card):
        self.browser.run("document.querySelector('.contents-more').open = true")
        self.browser.click(f".contents a[href='#{card}']")

    def text(self, selector):
        """As it is seen: nothing where it is hidden."""
        return self.browser.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "return e.hidden ? '' : e.innerText; })()")

    def test_the_roofline_is_to_scale(self):
        theory = self.vectors()
        circles = self.circles()
        self.assertEqual(set(circles), set(theory))
        for name, (flop, size, ns) in theory.items():
            x, y, _, _ = circles[name]
            self.assertAlmostEqual(x, self.pixel("x", flop / size), delta=0.5)
            self.assertAlmostEqual(y, self.pixel("y", flop / ns * 1e9), delta=0.5)
        radii = [circles[name][2] for name in sorted(theory, key=lambda k: theory[k][2])]
        self.assertEqual(radii, sorted(radii))
        roofs = self.browser.run("[...document.querySelectorAll('#roofline .roof')]"
                                 ".map((r) => "
                                 "[r.dataset.roof, [...r.points].map((p) => [p.x, p.y])])")
        self.assertEqual([name for name, _ in roofs], ["fp32"])
        start, ridge, end = roofs[0][1]
        self.assertAlmostEqual(ridge[0], self.pixel("x", 10), delta=0.5)
        self.assertAlmostEqual(ridge[1], self.pixel("y", 50e12), delta=0.5)
        self.assertAlmostEqual(end[1], ridge[1], delta=0.01)
        self.assertGreater(end[0], ridge[0])
        # The memory's roof: as many decades up as across, and through 5 TB/s x intensity.
        decade = [abs(self.pixel(axis, 10) - self.pixel(axis, 1)) for axis in "xy"]
        across, up = (ridge[0] - start[0]) / decade[0], (start[1] - ridge[1]) / decade[1]
        self.assertGreater(across, 0.5)
        self.assertAlmostEqual(across, up, delta=0.01)
        texts = self.browser.run(
            "[...document.querySelectorAll('#roofline .roof-name')]"
            ".map((t) => t.textContent)")
        self.assertEqual(sorted(texts), ["fp32 50.00 TFLOP/s", "memory 5.000 TB/s"])
        self.open("vectors", "--peak", "fp32=50T", "--peak", "memory=5T", "--fma", "1")
        texts = self.browser.run(
            "[...document.querySelectorAll('#roofline .roof-name')]"
            ".map((t) => t.textContent)")
        self.assertIn("fp32 25.00 TFLOP/s", texts)

    def test_kernels_on_the_roofline_tell_and_can_be_chosen(self):
        theory = self.vectors()
        circles = self.circles()
        chosen = lambda: self.browser.run(
            "[...document.querySelectorAll('#kernels tr[aria-selected=true]')]"
            ".map((r) => r.cells[0].textContent)")
        ring = lambda: self.browser.run(
            "(() => { const r = document.querySelector('#roofline .ring'); return r.getAttribute("
            "'visibility') === 'visible' ? [r.cx.baseVal.value, r.cy.baseVal.value] : null; })()")
        self.assertEqual((chosen(), ring()), ([], None))
        for name, (flop, size, ns) in theory.items():
            mark = f"#roofline .point[data-row='{[k['kernel'] for k in self.by_time].index(name)}']"
            self.browser.point(mark)
            tip = self.text("#roofline .tip")
            self.assertEqual(tip.splitlines()[0], name)
            self.assertIn(f"FLOP/B {flop / size:.3f}", tip)
            self.assertIn(f"of roof {size / 5e12 / (ns / 1e9):.1%}".replace("%", " %"), tip)
            self.browser.click(mark)
            self.assertEqual(chosen(), [name])
            self.assertEqual(ring(), circles[name][:2])
            self.assertTrue(self.text("#roofline .crumb").startswith(name))
        order = sorted(theory, key=lambda k: theory[k][0] / theory[k][1])
        self.browser.press("Escape")
        self.assertEqual((chosen(), ring()), ([], None))
        for name in order:
            self.browser.press("ArrowRight")
            self.assertEqual(chosen(), [name])
        self.browser.press("ArrowLeft")
        self.assertEqual(chosen(), [order[-2]])
        self.browser.click("#kernels tbody tr[aria-rowindex='4']")  # from the table to the drawing
        self.assertEqual(ring(), circles[self.by_time[2]["kernel"]][:2])

    def test_why_there_is_no_roofline_is_said(self):
        self.open("training")
        self.assertIn("--peak", self.text("#roofline .empty"))
        self.open("training", "--peak", "memory=1T")
        self.assertIn("--peak", self.text("#roofline .empty"))

        def forget_bytes(data):
            data["sections"] = [s for s in data["sections"] if s["title"] != "Roofline"]
        self.open_changed("vectors", forget_bytes)
        self.assertIn("DRAM bytes", self.text("#roofline .empty"))
        self.open("training", "--peak", "fp64=1T", "--peak",
                  "memory=1T")  # a precision that did not run
        self.assertEqual(
            self.browser.run(
                "[...document.querySelectorAll('#roofline .roof')]"
                ".map((r) => r.dataset.roof)"),
            ["memory"])
        # What has no place on logarithmic axes is counted.
        self.open("training", "--peak", "fp32=1T", "--peak", "memory=1T")
        drawn = self.browser.run("document.querySelectorAll('#roofline .point').length")
        kernels = report("training")["roofline"]
        self.assertEqual(drawn, sum(bool(k["flop_per_byte"] and k["flop_per_s"]) for k in kernels))
        self.assertLess(drawn, len(kernels))
        self.assertIn(f"{len(kernels) - drawn} of {len(kernels)}", self.text("#roofline .crumb"))

    def test_flop_over_time_is_to_scale(self):
        """The chart from data of its own: bins of 1,024 and 4,096 ns on one device, and another
        device."""
        texts = ["node1.trace.pb, device 0", "<b>node2</b>.trace.pb, device 3", "forward",
                 "<b>x</b>", "loss"]
        forward = [1024, 0, 2048, 1024, 4096, 0, 0, 4096]

        def change(data):
            data["texts"] += texts
            number = {text: data["texts"].index(text) for text in texts}

            def series(phase, begin, width, flop):
                return {"phase": number[phase], "begin_ns": begin, "bin_ns": width, "flop": flop}
            data["flop_over_time"] = [
                {"label": number[texts[0]], "phases": [series("forward", 8192, 1024, forward),
                                                       series("<b>x</b>", 12288, 4096, [12288])]},
                {"label": number[texts[1]], "phases": [series("loss", 0, 1024, [2**60])]}]
        self.open_changed("training", change)
        self.unfold("flop-over-time")
        labels = self.browser.run("[...document.querySelectorAll('#flop-over-time option')]"
                                  ".map((o) => o.textContent)")
        self.assertEqual(labels, texts[:2])
        bins = [{"forward": 4096.0, "<b>x</b>": 0.0}, {"forward": 8192.0,
                                                       "<b>x</b>": 12288.0}]  # of 4,096 ns
        (_, zero), *_, (top_value, top) = self.scale("y", "#flop-over-time")
        rate = lambda pixel: (pixel - zero) / (top - zero) * top_value / 1e9 * 4096
        (_, left), *_, (last_time, right) = self.scale("x", "#flop-over-time")
        self.assertLessEqual(last_time, 8192)
        layers = dict(
            self.browser.run("[...document.querySelectorAll('#flop-over-time .layer')].map((l) => "
                             "[l.dataset.phase, l.getAttribute('d')])"))
        self.assertEqual(set(layers), set(bins[0]))
        below = [0, 0]
        for phase, path in layers.items():
            edges = re.findall(r"[ML]([\d.]+) ([\d.]+)H([\d.]+)", path)
            self.assertEqual(len(edges), 4)  # two bins, forth and back
            for i, (x, y, end) in enumerate(edges[:2]):
                self.assertAlmostEqual(float(x), left + (right - left) * i * 4096 / last_time,
                                       delta=0.2)
                self.assertAlmostEqual(float(end),
                                       left + (right - left) * (i + 1) * 4096 / last_time,
                                       delta=0.2)
                self.assertAlmostEqual(rate(float(y)), below[i] + bins[i][phase], delta=100)
                below[i] += bins[i][phase]
        self.browser.point(
            "#flop-over-time .axis")  # what the axis is: at its right end, in the second bin
        self.assertEqual(
            self.text("#flop-over-time .tip").splitlines(), [
                "4.096 us to 8.192 us: 5.000 GFLOP/s", "forward 2.000 GFLOP/s",
                "<b>x</b> 3.000 GFLOP/s"
            ])
        self.browser.run(
            "(() => { const s = document.querySelector('#flop-over-time select'); s.value = 1; "
            "s.dispatchEvent(new Event('change')); })()")
        self.browser.wait("document.querySelectorAll('#flop-over-time .layer').length === 1")
        self.assertEqual(
            self.browser.run("document.querySelector('#flop-over-time .layer').dataset.phase"),
            "loss")
        self.browser.point("#flop-over-time .axis")
        self.assertEqual(
            self.text("#flop-over-time .tip").splitlines()[1:],
            [f"loss {2**60 / 1024 * 1e9 / 1e24:.3f} YFLOP/s"])
        self.assertEqual(
            self.browser.run("document.querySelectorAll('main b b, .legend b').length"), 0)

    def test_flop_over_time_has_steps_as_columns(self):
        """12 equal steps of 2,500 ns, in bins of 1,024 ns that cut each of them at another
        place."""
        step, count, bin_ns, begin = 2500, 12, 1024, 1000
        flop = [0.0] * (1 + (begin + step * count) // bin_ns)
        for number in range(count):  # each step's FLOP evenly over its time, 7 a ns
            for i in range(len(flop)):
                left = max(i * bin_ns, begin + number * step)
                right = min((i + 1) * bin_ns, begin + (number + 1) * step)
                flop[i] += 7 * max(0, right - left)

        def change(steps):
            def change(data):
                data["texts"] += ["a device", "forward"]
                number = {text: data["texts"].index(text) for text in ("a device", "forward")}
                data["flop_over_time"] = [{
                    "label": number["a device"], "steps": steps, "phases": [{
                        "phase": number["forward"], "begin_ns": 0, "bin_ns": bin_ns,
                        "flop": flop}]}]
            return change

        def heights():
            path = self.browser.run("document.querySelector('#flop-over-time .layer')"
                                    ".getAttribute('d')")
            edges = re.findall(r"[ML]([\d.]+) ([\d.]+)H([\d.]+)", path)
            return [float(y) for _, y, _ in edges[:len(edges) // 2]]

        for few in (False, True):
            self.open_changed("training", change({"begin_ns": begin, "step_ns": step,
                                                  "count": 5 if few else count}))
            self.unfold("flop-over-time")
            self.assertEqual(len(heights()), len(flop) if few else count + 2)
            if few:
                continue
            # Before the first step there is nothing, and behind the last one is the rest of a bin.
            (_, zero), *_, (top_value, top) = self.scale("y", "#flop-over-time")
            for y in heights()[2:count]:  # in whole: their neighbours are steps as well
                self.assertAlmostEqual((y - zero) / (top - zero) * top_value, 7e9, delta=1e7)
            self.assertIn("one step a column", self.text("#flop-over-time .crumb"))

    def test_flop_over_time_adds_up_to_the_json_report(self):
        self.open("other_rank")  # counts and sums of times alone
        self.unfold("flop-over-time")
        self.assertIn("a start and an end", self.text("#flop-over-time .empty"))
        self.open("timeline")
        self.unfold("flop-over-time")
        expected = report("timeline")
        devices = [row["ordinal"] for row in expected["device_time"]]
        self.assertEqual(len(devices), 2)
        for i, device in enumerate(devices):
            self.browser.run(
                f"(() => "
                f"{{ const s = document.querySelector('#flop-over-time select'); s.value = {i}; "
                "s.dispatchEvent(new Event('change')); })()")
            phases = Counter()
            for row in expected["flop_over_time"]:
                if row["ordinal"] == device:
                    phases[row["phase"]] += exact(row)
            layers = ("Object.fromEntries([...document.querySelectorAll('#flop-over-time .layer')]"
                      ".map((l) => [l.dataset.phase, l.getAttribute('d')]))")
            self.browser.wait(
                f"Object.keys({layers}).sort().join() === '{','.join(sorted(phases))}'")
            ns, flop_per_s = (abs((lines[-1][0] - lines[0][0]) / (lines[-1][1] - lines[0][1]))
                              for lines in (self.scale(axis, "#flop-over-time")
                                            for axis in "xy"))  # of a pixel
            for phase, path in self.browser.run(layers).items():
                edges = [
                    tuple(map(float, edge))
                    for edge in re.findall(r"[ML]([\d.]+) ([\d.]+)H([\d.]+)", path)
                ]
                upper, lower = edges[:len(edges) // 2], edges[len(edges) // 2:][::-1]
                area = sum(
                    (end - x) * (low - high) for (x, high, end), (_, low, _) in zip(upper, lower))
                self.assertAlmostEqual(area * ns * flop_per_s / 1e9 / sum(phases.values()),
                                       phases[phase] / sum(phases.values()), delta=0.01)

    def test_fifty_thousand_rows_stay_quick(self):
        start = time.monotonic()
        self.open("wide", "--peak", "fp32=1T", "--peak", "memory=1T")
        opened = time.monotonic() - start
        size = "document.getElementsByTagName('*').length"
        self.assertEqual(
            self.browser.run(f"document.querySelector('{KERNELS}').getAttribute('aria-rowcount')"),
            "50001")
        self.assertLess(self.browser.run(size), 6000)
        # On the roofline: those that take most time as circles, each of the others as a dot.
        self.assertEqual(self.browser.run("document.querySelectorAll('#roofline .point').length"),
                         1000)
        dots = self.browser.run(
            "[...document.querySelectorAll('#roofline .dots')].map((d) => "
            "d.getAttribute('d').split('h0').length - 1)"
        )
        self.assertEqual(sum(dots), 49_000)
        start = self.browser.run("performance.now()")
        self.browser.point("#roofline .dots")
        took = [f"pointed in {self.browser.run('performance.now()') - start:.0f} ms"]
        self.assertRegex(self.text("#roofline .tip"), r"^kernel_\d+\n")
        for column, key in ((2, "gpu_time_ns"), (7, "flop"), (1, "name")):
            start = self.browser.run("performance.now()")
            self.browser.click(f"{KERNELS} th:nth-child({column}) button")
            took.append(f"{key} {self.browser.run('performance.now()') - start:.0f} ms")
        names = sorted(f"kernel_{i * 7919 % 65537}"
                       for i in range(1, 50_001))  # as make_traces.cpp names them
        shown = cells(self.browser, 0)
        self.assertEqual(shown, names[:len(shown)])
        # To the last row and back, with a bounded number of rows in the document.
        self.browser.run(f"document.querySelector('{KERNELS}').parentElement.scrollTop = 1e9")
        self.browser.wait(
            f"[...document.querySelectorAll('{KERNELS} tr')].some((r) => r.ariaRowIndex === "
            f"'50001')"
        )
        self.assertEqual(cells(self.browser, 0)[-1], names[-1])
        self.assertLess(len(cells(self.browser, 0)), 200)
        self.browser.run(
            f"""(() => {{
            const card = document.querySelector('{KERNELS}').closest('.card');
            const box = card.querySelector('.filter');
            box.value = "KERNEL_1234"; box.dispatchEvent(new Event("input")); }})()""")
        self.assertEqual(cells(self.browser, 0), [n for n in names if "kernel_1234" in n])
        self.assertLess(self.browser.run(size), 6000)
        print(f"50,000 rows: opened in {opened:.1f} s; sorted by {', '.join(took)}",
              file=sys.stderr)

    def test_names_run_nothing(self):
        page = self.open("hostile", "--peak", "fp32=1e30", "--peak", "memory=1e30")
        names = [k["kernel"] for k in report("hostile")["kernels"]]
        shown = cells(self.browser, 0)
        self.assertEqual(len(shown), len(names))
        for plain in ("<script>window.hacked=1</script>",
                      "</script><script>window.hacked=1</script>", "<!--<script>",
                      "<img src=x onerror=window.hacked=1>", "\"'><svg onload=window.hacked=1>",
                      "__proto__"):
            self.assertIn(plain, shown)
        self.assertIn("\\u{202E}evil\\u{202C}", shown)
        self.assertIn("\\x1B]0;title\\x07\\x1B[31mred", shown)
        self.browser.click(f"{KERNELS} th:first-child button")
        self.browser.click("button[data-weight=launches]")
        self.assertEqual(self.browser.run("typeof window.hacked"), "undefined")
        self.assertEqual(self.browser.run("document.scripts.length"), 2)  # data and ours
        self.browser.point("#roofline .point")  # names in the tip and beside the drawing
        self.browser.click("#roofline .point")
        self.assertIn(self.text("#roofline .tip").splitlines()[0], shown)
        for _ in names:
            self.browser.press("ArrowRight")
        self.assertEqual(self.browser.run("typeof window.hacked"), "undefined")
        self.assertEqual(
            self.browser.run(
                "document.querySelectorAll('img, main svg:not(.plot), main script').length"), 0)
        self.assertEqual(page.read_text().lower().count("</script"), 2)
        # Exact beyond 2^53.
        self.assertIn(
            "2,305,843,009,213,693,952 FLOP",
            self.browser.run(f"[...document.querySelectorAll('{KERNELS} tbody tr:not(.space)')]"
                             ".flatMap((row) => [...row.cells].map((cell) => cell.title)).join()"))

    def test_the_policy_stops_scripts_that_are_not_ours(self):
        page = self.open("training")
        changed = FOLDER / "changed.html"
        changed.write_text(page.read_text().replace(
            "<body>", "<body><script>window.hacked=1</script>"
            "<img src='https://example.com/x.png'>"))
        self.browser.open(changed)
        self.browser.wait("document.documentElement.dataset.ready === 'true'")
        self.assertEqual(self.browser.run("typeof window.hacked"), "undefined")
        texts = [p.get("text", "") for p in self.browser.problems]
        self.assertEqual(len(texts), 2, texts)
        for text in texts:
            self.assertIn("Content Security Policy", text)
        self.browser.problems.clear()
        self.assertFalse(
            [r for r in self.browser.requests if r.startswith("http") and "example" not in r])
        self.browser.requests[:] = self.browser.requests[:1]


if __name__ == "__main__":
    if chromium.PROGRAM is None:
        print("skipped: no Chromium; on Debian `apt-get install chromium` brings it")
        sys.exit(77)
    unittest.main(argv=["html_test.py", "-v"])
