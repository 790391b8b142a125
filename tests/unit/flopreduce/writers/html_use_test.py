"""What a person does with the HTML page, in a real browser: looks things up, searches, folds, sends
a link, prints, reads it on a phone and in the dark, compares two runs, and looks at a job of 1,000
ranks."""

import base64
import html
import itertools
import json
import re
import sys
import unittest
from pathlib import Path

import chromium
from made_traces import FOLDER, report, run, trace
from report_tables import by, known

KERNELS = "table[data-key=kernels]"
EXAMPLE = Path(__file__).resolve().parents[4] / "examples/gpt-simulated.pb.zst"


def luminance(color):
    """WCAG's relative luminance of a colour as getComputedStyle writes it."""
    numbers = [float(n) for n in re.findall(r"[\d.]+(?:e-?\d+)?", color.split("(")[1])][:3]
    parts = numbers if color.startswith("color(srgb") else [n / 255 for n in numbers]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055)**2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Use(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(chromium.Chromium())

    def setUp(self):
        self.browser.look()

    def page(self, name, *arguments):
        path = FOLDER / f"use_{name}.html"
        done = run(*arguments, "--format", "html", "--force", "-o", path)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return path

    def show(self, path, fragment=""):
        self.browser.open("about:blank")
        self.browser.open(path, fragment)
        self.browser.wait("document.documentElement.dataset.ready === 'true'")

    def open(self, name, *options, fragment=""):
        path = self.page(name, *options, trace(name))
        self.show(path, fragment)
        return path

    def tearDown(self):
        problems, self.browser.problems = self.browser.problems, []
        self.assertEqual(problems, [])
        self.assertEqual([r for r in self.browser.requests if not r.startswith("file:")], [])

    def fragment(self):
        return self.browser.run("location.hash.slice(1)")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def styles(self, selector, *names):
        return self.browser.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => "
            f"{json.dumps(names)}.map((name) => getComputedStyle(e)[name]))")

    # --- what is on the page ---------------------------------------------------------------------

    def test_the_first_figures_are_those_of_the_terminal(self):
        self.open("training")
        screen = run("--color", "never", trace("training")).stdout.decode()
        lines = dict(re.findall(r"^  ([A-Z][\w/ ]{1,12}?) {2,}(.*)$", screen, re.MULTILINE))
        cards = self.browser.run("[...document.querySelectorAll('.figure')].map((f) => "
                                 "[f.querySelector('dt').textContent, "
                                 "f.querySelector('dd').firstChild.textContent])")
        self.assertEqual([name for name, _ in cards], [
            "HFU", "MFU", "Executed", "Kernel time", "Backward/fwd", "Coverage", "Profiler cost"])
        for name, value in cards:
            self.assertTrue(lines[name].startswith(value), (name, value, lines[name]))

    def test_figures_are_rounded_as_on_the_terminal(self):
        for name in ("halfway", "training", "vectors"):
            self.open(name)
            text = run("--format", "markdown", "--all", "--top", 1000, trace(name)).stdout.decode()
            text = html.unescape(text).replace("\\", "")
            rows = [[cell.strip() for cell in line[1:-1].split("|")]
                    for line in text.splitlines() if line.startswith("|")]
            self.all_columns("kernels")
            shown = self.browser.run(
                "[...document.querySelectorAll('table[data-key=kernels] tr:not(.space)')]"
                ".map((row) => [...row.cells].map((cell) => cell.textContent.trim()))")
            self.assertGreater(len(shown), 3)
            for row in shown:
                # The kernel's own row, and what it has in the roofline.
                of_kernel = [other for other in rows if other[0].startswith(row[0])]
                own = [other for other in of_kernel if set(other[1:]) <= set(row)]
                self.assertTrue(own, (name, row))
                self.assertLessEqual(set(row[1:]), set(sum(of_kernel, [])), (name, row))

    def all_columns(self, key):
        more = f"#{key} .tools .button"
        if self.browser.run(f"document.querySelector('{more}')?.hidden === false"):
            self.browser.click(more)

    def heads(self, key):
        return self.browser.run(f"[...document.querySelectorAll('[data-key={key}] th')]"
                                ".map((head) => head.textContent)")

    def test_what_one_looks_for_comes_first_and_no_column_is_out_of_sight(self):
        path = self.page("wanted", EXAMPLE)
        wanted = ["kernel", "GPU time", "of GPU time", "bound by", "of roof", "of peak"]
        for width in (900, 1400, 1920):
            self.browser.look(width)
            self.show(path, "open=operators,ranges,ledger,copies,precisions")
            self.assertEqual(self.heads("kernels")[:6], wanted, width)
            self.assertEqual(self.browser.run(
                "[...document.querySelectorAll('.scroll')].filter((s) => s.closest('.card').open "
                "&& !s.closest('.fold') && s.scrollWidth > s.clientWidth + 2)"
                ".map((s) => s.ariaLabel)"), [], width)
            # A heading is whole, and columns that are left out are said and can be had.
            self.assertEqual(self.browser.run(
                "[...document.querySelectorAll('th button')].filter((b) => "
                "b.scrollWidth > b.clientWidth + 1).map((b) => b.textContent)"), [], width)
            shown, more = len(self.heads("kernels")), self.text("#kernels .tools .button")
            self.all_columns("kernels")
            self.assertEqual(more, "" if len(self.heads("kernels")) == shown else
                             f"{len(self.heads('kernels')) - shown} more columns".replace(
                                 "1 more columns", "1 more column"))
        times = by(json.loads(run("--format", "json", EXAMPLE).stdout), "kernels")
        whole = sum(row["gpu_time_ns"] for row in times.values())
        for name, share in self.browser.run(
                f"[...document.querySelectorAll('{KERNELS} tbody tr:not(.space)')]"
                ".map((row) => [row.cells[0].title, row.cells[2].textContent])"):
            self.assertAlmostEqual(float(share.split()[0]),
                                   100 * times[name]["gpu_time_ns"] / whole, delta=0.051)

    def test_names_are_cut_in_the_middle(self):
        path = self.page("cut", trace("training"))
        self.browser.look(1400)
        before, data, after = re.split(r'(?<=id="data">)(.*?)(?=</script>)', path.read_text(),
                                       maxsplit=1)
        changed = json.loads(data)
        ranges = next(s for s in changed["sections"] if s["key"] == "ranges")
        long = "step/" + "x" * 300 + "/its_own_end"
        changed["texts"].append(long)
        ranges["table"]["rows"][0][0] = len(changed["texts"]) - 1
        path.write_text(before + json.dumps(changed).replace("<", "\\u003c") + after)
        self.show(path, "at=ranges")
        for whole, begin, end, cell in self.browser.run(
                "[...document.querySelectorAll('[data-key=ranges] .cut')].map((cut) => "
                "[cut.textContent, ...[...cut.children].map((part) => "
                "part.getBoundingClientRect().right), "
                "cut.closest('td').getBoundingClientRect().right])"):
            self.assertLess(begin, end)
            self.assertLessEqual(end, cell)
            if whole == long:
                long = None
        self.assertIsNone(long)

    def test_words_have_one_meaning_for_people(self):
        self.open("network", "--peak", "fp32=50T", "--peak", "memory=5T", fragment="at=terms")
        words, meanings = (self.browser.run(f"[...document.querySelectorAll('.terms {tag}')]"
                                            ".map((e) => e.textContent)") for tag in ("dt", "dd"))
        self.assertEqual(len(words), len(set(words)))
        for word, meaning in zip(words, meanings, strict=True):
            self.assertNotRegex(meaning, r"\bnull\b|[a-z]_[a-z]|[a-z]\.[a-z]", word)

    def test_a_phase_has_one_colour(self):
        self.open("timeline", fragment="open=flop-over-time")
        phases = set(by(report("timeline"), "phases"))
        seen = {phase: set() for phase in phases}
        dots = self.browser.run(
            "[...document.querySelectorAll('table[data-key=phases] tbody tr:not(.space)')]"
            ".map((row) => [row.cells[0].textContent, "
            "getComputedStyle(row.querySelector('.dot')).backgroundColor])")
        legends = self.browser.run(
            "[...document.querySelectorAll('.legend > span')].map((s) => [s.textContent, "
            "getComputedStyle(s.querySelector('.dot')).backgroundColor])")
        bars = self.browser.run(
            "[...document.querySelectorAll('.bar i')].map((i) => [i.title.split(':')[0], "
            "getComputedStyle(i).backgroundColor])")
        layers = self.browser.run("[...document.querySelectorAll('.layer')].map((l) => "
                                  "[l.dataset.phase, getComputedStyle(l).fill])")
        for places in (dots, bars, layers):
            self.assertTrue(places)
        for phase, color in itertools.chain(dots, legends, bars, layers):
            if phase in seen:
                seen[phase].add(color)
        for phase, colors in seen.items():
            self.assertEqual(len(colors), 1, (phase, colors))
        self.assertEqual(len(set.union(*seen.values())), len(phases))  # and no other's

    def test_bars_fall_from_all_to_the_model_and_open(self):
        self.open("vectors")
        table = {row["line"]: row for row in report("vectors")["lost"]}
        capacity = report("vectors")["lost_capacity"][0]["capacity_ns"]
        falls = self.browser.run(
            "[...document.querySelectorAll('.fall')].map((f) => { const i = f.querySelector('i'); "
            "return [f.getAttribute('aria-controls').slice(5), parseFloat(i.style.left), "
            "parseFloat(i.style.width)]; })")
        self.assertGreater(len(falls), 1)
        until = 0
        for line, left, width in falls:
            self.assertAlmostEqual(left, until, 6)
            self.assertAlmostEqual(width, 100 * known(table[line], "ns") / capacity, 6)
            until += width
        self.assertAlmostEqual(until, 100, 6)
        for width in (800, 1000, 1280):  # notes end where there is no more room
            self.browser.look(width)
            for place in self.browser.run(
                    "[...document.querySelectorAll('.fall-note')].map((note) => { "
                    "const [a, b] = [note, note.parentElement].map((e) => "
                    "e.getBoundingClientRect()); return [a.left - b.left, b.right - a.right]; })"):
                self.assertGreaterEqual(min(place), -1, width)
        # HFU's and MFU's lines have their names and values: beside the lines, in the bars' width.
        figures = report("vectors")["figures"]
        heads = self.browser.run(
            "[...document.querySelectorAll('.fall-head')].map((head) => { const [a, b] = "
            "[head, head.parentElement].map((e) => e.getBoundingClientRect()); "
            "return [head.textContent, ...[a.left, a.right].map((x) => (x - b.left) / b.width)]; "
            "})")
        self.assertEqual(" ".join(text for text, *_ in heads).split()[0], "HFU")
        for text, left, right in heads:
            name, share = re.match(r"(HFU|MFU) .*?([\d.]+) %", text).groups()
            self.assertAlmostEqual(float(share), 100 * figures[name.lower()], delta=0.051)
            at = 1 - figures[name.lower()]
            self.assertLess(min(abs(at - left), abs(at - right)), 0.005, heads)
            self.assertTrue(-0.001 <= left and right <= 1.001, heads)
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.button')].filter((b) => "
                                          "b.checkVisibility() && b.textContent === '').length"), 0)
        # The same as a table, which is folded.
        folded = "document.querySelector('#lost .fold').open"
        self.assertFalse(self.browser.run(folded))
        self.browser.click("#lost .fold summary")
        self.assertTrue(self.browser.run(folded))
        # By keyboard: the parts of a line by phase, which add up to it.
        line = falls[0][0]
        self.browser.run("document.querySelector('.fall').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.browser.run("document.querySelector('.fall').ariaExpanded"), "true")
        heads = self.browser.run("[...document.querySelectorAll('.fall-parts thead th')]"
                                 ".map((h) => h.textContent)")
        parts = [row for row in table.values() if row["parent"] == line] or [table[line]]
        self.assertEqual(len(heads), 1 + len(parts))
        self.assertFalse(self.browser.run(f"document.getElementById('lost-{line}').hidden"))
        self.browser.press("Enter")
        self.assertTrue(self.browser.run(f"document.getElementById('lost-{line}').hidden"))

    def test_the_answer_is_on_the_first_screen(self):
        for width, height in ((1400, 1000), (390, 844)):
            self.browser.look(width, height)
            self.open("network")
            ends = self.browser.run("[...document.querySelectorAll('.answer .figure, .fall')]"
                                    ".map((e) => e.getBoundingClientRect().bottom)")
            self.assertGreater(len(ends), 4)
            self.assertLessEqual(max(ends), height)
            names = self.browser.run("[...document.querySelectorAll('.answer dt')]"
                                     ".map((e) => e.textContent)")
            self.assertEqual(names, ["HFU", "MFU"])
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
        self.assertEqual(self.browser.run("document.title"), "train on host, NVIDIA H200")

    def test_steps_side_by_side(self):
        self.open("network")
        least_ns = report("network")["figures"]["hfu"] * 5e6 / 15  # of one product of 15, in 5 ms
        self.browser.run("document.querySelector('#steps .plot').focus()")
        tip = "#steps .tip"
        self.assertTrue(self.browser.run(f"document.querySelector('{tip}').hidden"))
        # Idle time before a step's first kernel is that step's; the first one has none.
        for number, wall, wall_ns in ((1, "350.0 us", 350e3), (2, "1.000 ms", 1e6)):
            self.browser.press("ArrowRight")
            said = self.text(tip).splitlines()
            self.assertEqual(said[:2], [f"step {number}: device time {wall}", "10.00 GFLOP"])
            self.assertEqual(said[2], f"HFU {100 * 5 * least_ns / wall_ns:.1f} %")
            self.assertEqual("no kernel runs 650.0 us" in "\n".join(said), number > 1)
        self.browser.press("Escape")
        self.assertTrue(self.browser.run(f"document.querySelector('{tip}').hidden"))

    def test_layers_have_bars_of_flop_and_of_time(self):
        self.open("network")
        bars = self.browser.run(
            "[...document.querySelectorAll('.layer-row:not(.layer-head)')].map((row) => "
            "[row.firstChild.textContent, ...[...row.querySelectorAll('i')].map((i) => "
            "parseFloat(i.style.width))])")
        # FLOP of forward and backward, and their time, of the most that a layer has.
        expected = [["layer:fc2", 100 / 3, 200 / 3, 100 * 80 / 240, 100 * 160 / 240],
                    ["layer:fc1", 100 / 3, 100 / 3, 100 * 60 / 240, 100 * 50 / 240]]
        self.assertEqual([row[0] for row in bars], [row[0] for row in expected])
        for row, wanted in zip(bars, expected):
            for width, other in zip(row[1:], wanted[1:], strict=True):
                self.assertAlmostEqual(width, other, 3)

    def test_a_column_head_says_what_it_means(self):
        self.open("training")
        at = self.heads("kernels").index("FLOP") + 1
        head = f"{KERNELS} th:nth-child({at})"
        meaning = self.browser.run(f"document.querySelector('{head}').ariaDescription")
        self.assertIn("floating-point operations", meaning)
        self.assertTrue(self.browser.run("document.querySelector('#meaning').hidden"))
        self.browser.point(head)
        self.assertEqual(self.text("#meaning"), meaning)
        self.browser.press("Escape")
        self.assertTrue(self.browser.run("document.querySelector('#meaning').hidden"))
        # By keyboard: the head before it, then Tab.
        self.browser.run(
            f"document.querySelector('{KERNELS} th:nth-child({at - 1}) button').focus()")
        self.browser.press("Tab")
        self.assertEqual(self.text("#meaning"), meaning)
        # The same words are in the list at the end.
        self.browser.click(".contents-more summary")
        self.browser.click(".contents a[href='#terms']")
        self.assertIn(meaning, self.text("#terms .terms"))

    # --- the flame view --------------------------------------------------------------------------

    def search(self, text):
        self.browser.click("#flame .filter")
        self.browser.call("Input.insertText", text=text)
        self.browser.frames()

    def test_search_in_the_flame_view(self):
        self.open("training")
        expected = report("training")
        work = {row["range"]: known(row) for row in expected["ranges"]}
        total = known(expected["figures"])
        self.browser.click("button[data-weight=flop]")
        self.search("LAYER:")
        share = (work["step/forward/layer:fc1"] + work["step/forward/layer:fc2"]) / total
        found = self.text("#flame .count")
        self.assertRegex(found, r"^2 matches, ")
        self.assertAlmostEqual(float(re.search(r"([\d.]+) %", found)[1]), 100 * share, delta=0.05)
        marked = self.browser.run(
            "[...document.querySelectorAll('.frame.match')].map((f) => f.textContent)")
        self.assertEqual(sorted(marked), ["layer:fc1", "layer:fc2"])
        faint = self.browser.run(
            "[...document.querySelectorAll('.frame.faint')].map((f) => f.textContent)")
        self.assertIn("backward", faint)
        self.assertNotIn("forward", faint)
        self.search("nothing of that name")
        self.assertEqual(self.text("#flame .count"), "no match")

    def test_the_flame_view_zooms_out_by_a_button_and_goes_by_keys(self):
        self.open("training")
        reset = "document.querySelector('#flame .reset').checkVisibility()"
        self.assertFalse(self.browser.run(reset))
        here = "document.activeElement.textContent"
        self.browser.run("document.querySelector('.frame[aria-current]').focus()")
        self.assertEqual(self.browser.run(
            "document.querySelector('#flame [aria-pressed=true]').textContent"), "GPU time")
        self.browser.click("button[data-weight=flop]")
        self.browser.run("document.querySelector('.frame[aria-current]').focus()")
        for key, name in (("ArrowDown", "step"), ("ArrowDown", "backward"),
                          ("ArrowUp", "step"), ("ArrowDown", "backward"),
                          ("ArrowRight", "forward")):
            self.browser.press(key)
            self.browser.wait(f"{here} === {json.dumps(name)}")
        self.browser.press("Enter")
        frames = "[...document.querySelectorAll('.frame')].map((f) => f.textContent)"
        self.assertNotIn("backward", self.browser.run(frames))
        self.assertTrue(self.browser.run(reset))
        self.browser.click("#flame .reset")
        self.assertIn("backward", self.browser.run(frames))
        self.assertFalse(self.browser.run(reset))

    # --- contents, folding, the address ----------------------------------------------------------

    def test_contents_open_and_cards_fold(self):
        self.open("training")
        is_open = "document.getElementById('ledger').open"
        self.assertFalse(self.browser.run(is_open))
        # It is further down, and folded in the list until it is asked for.
        shown = "document.querySelector('.contents a[href=\"#ledger\"]').checkVisibility()"
        self.assertFalse(self.browser.run(shown))
        self.browser.click(".contents-more summary")
        self.assertTrue(self.browser.run(shown))
        self.browser.click(".contents a[href='#ledger']")
        self.assertTrue(self.browser.run(is_open))
        top = self.browser.run("document.getElementById('ledger').getBoundingClientRect().top")
        self.assertLess(top, 900)
        self.assertGreaterEqual(top, 0)
        self.browser.click("#ledger > summary")
        self.assertFalse(self.browser.run(is_open))
        links = self.browser.run(
            "[...document.querySelectorAll('.contents a')].map((a) => a.hash.slice(1))")
        self.assertEqual(links, self.browser.run(
            "[...document.querySelectorAll('.card')].map((d) => d.id)"))

    def test_a_link_brings_back_what_was_chosen(self):
        path = self.open("training")
        self.search("gradient")
        self.browser.run("[...document.querySelectorAll('.frame')].find((f) => "
                         "f.textContent === 'backward').click()")
        self.browser.click("button[data-weight=launches]")
        self.browser.click(f"{KERNELS} th:nth-child(2) button")
        self.browser.click("#ledger > summary")
        self.browser.click("#phases > summary")
        for word in ("open=ledger", "closed=phases"):
            self.browser.wait(f"location.hash.includes('{word}')")
        looks = ("JSON.stringify([[...document.querySelectorAll('.frame')].map((f) => "
                 "[f.textContent, f.className, f.style.width]), "
                 f"[...document.querySelectorAll('{KERNELS} tbody tr')].map((r) => r.textContent), "
                 "[...document.querySelectorAll('.card')].map((d) => d.open)])")
        before, fragment = self.browser.run(looks), self.fragment()
        self.show(path, fragment)
        self.assertEqual(self.browser.run(looks), before)
        self.show(path, "ledger")  # a plain anchor
        self.assertTrue(self.browser.run("document.getElementById('ledger').open"))

    # --- the roofline ----------------------------------------------------------------------------

    def test_points_of_the_roofline_have_names_and_links(self):
        self.open("vectors", "--peak", "fp32=50T", "--peak", "fp64=25T", "--peak", "memory=5T")
        boxes = self.browser.run(
            "[...document.querySelectorAll('#roofline .point-name')].map((t) => "
            "{ const b = t.getBoundingClientRect(); "
            "return [t.textContent, b.left, b.right, b.top, b.bottom]; })")
        self.assertEqual({name for name, *_ in boxes},
                         {"matrix_vector", "outer_product", "row_sum"})
        for (_, left, right, top, bottom), (_, l, r, t, b) in itertools.combinations(boxes, 2):
            self.assertTrue(right <= l or r <= left or bottom <= t + 3 or b <= top + 3, boxes)
        # The device has a peak of fp64, too, which did not run.
        self.assertEqual(self.browser.run(
            "[...document.querySelectorAll('#roofline .roof')].map((r) => r.dataset.roof)"),
            ["fp32"])
        self.browser.click("#roofline .point")
        kernel = self.text("#roofline .crumb b")
        self.browser.click("#roofline .crumb .button:first-of-type")
        rows = self.browser.run(
            f"[...document.querySelectorAll('{KERNELS} tr[aria-selected=true]')]"
            ".map((r) => r.cells[0].textContent)")
        self.assertEqual(rows, [kernel])
        self.browser.click("#roofline .crumb .button:last-of-type")
        self.assertEqual(self.browser.run("document.querySelector('#flame .filter').value"), kernel)
        self.assertEqual(self.browser.run("document.querySelectorAll('.frame.match').length"), 1)

    def test_text_on_the_roofline_is_beside_the_circles(self):
        """Points on all sides: one at the right edge of the plot, under the name of its roof."""
        path = self.page("beside", trace("vectors"), "--peak", "fp32=8T", "--peak", "memory=5T")
        for width in (1400, 390):
            self.browser.look(width=width)
            self.show(path)
            hidden = self.browser.run("""(() => {
                const boxes = (of) => [...document.querySelectorAll(`#roofline ${of}`)].map(
                  (one) => [one.textContent, one.getBoundingClientRect()]);
                return boxes(".roof-name, .point-name").flatMap(([name, t]) => boxes(".point")
                  .filter(([, c]) => c.left < t.right - 1 && t.left + 1 < c.right &&
                                     c.top < t.bottom - 3 && t.top + 3 < c.bottom)
                  .map(([, c]) => [name, t.left, t.right, t.top, t.bottom,
                                   c.left, c.right, c.top, c.bottom])); })()""")
            self.assertEqual(hidden, [], width)

    def test_no_roof_strikes_a_name_through(self):
        """Points near to the slope and to the roof that they reach."""
        path = self.page("struck", trace("vectors"), "--peak", "fp32=2T", "--peak", "memory=3T")
        for width in (1400, 390):
            self.browser.look(width=width)
            self.show(path)
            names, struck = self.browser.run("""(() => {
                const names = [...document.querySelectorAll("#roofline .point-name")];
                const roofs = [...document.querySelectorAll("#roofline .roof")];
                const struck = names.filter((name) => { const box = name.getBBox();
                  return roofs.some((roof) => { const length = roof.getTotalLength();
                    for (let at = 0; at < length; at += 2) {
                      const { x, y } = roof.getPointAtLength(at);
                      if (x > box.x && x < box.x + box.width && y > box.y + 4 &&
                          y < box.y + box.height - 4) return true;
                    }
                    return false; }); });
                return [names.length, struck.map((name) => name.textContent)]; })()""")
            self.assertGreater(names, 0)
            self.assertEqual(struck, [], width)

    def test_a_kernel_chosen_at_the_end_of_a_table_leaves_the_table_full(self):
        self.show(self.page("last", trace("job0"), "--peak", "fp32=1T", "--peak", "memory=1T"))
        for back in (1, 2, 1):  # the second time nothing scrolls, and no event says so
            name = self.browser.run(f"""(async () => {{
                const frame = () => new Promise((done) => requestAnimationFrame(done));
                document.querySelector("{KERNELS}").closest(".scroll").scrollTop = 1e9;
                for (let i = 0; i < 3; ++i) await frame();
                const rows = [...document.querySelectorAll("{KERNELS} tbody tr:not(.space)")];
                rows.at(-{back}).click();
                for (let i = 0; i < 3; ++i) await frame();
                return rows.at(-{back}).cells[0].title;
            }})()""")
            rows, free = self.browser.run(f"""(() => {{
                const table = document.querySelector("{KERNELS}");
                const box = table.closest(".scroll").getBoundingClientRect();
                const head = table.tHead.getBoundingClientRect().height;
                const rows = [...table.querySelectorAll("tbody tr:not(.space)")]
                    .map((row) => row.getBoundingClientRect())
                    .filter((row) => row.bottom > box.top + head && row.top < box.bottom);
                return [rows.length, box.height - head];
            }})()""")
            self.assertGreaterEqual((rows + 1) * 28, free, back)
            self.assertEqual(self.browser.run(
                f"document.querySelector('{KERNELS} tr[aria-selected=true]').cells[0].title"), name)

    # --- a phone, paper, the dark ----------------------------------------------------------------

    def test_a_phone_shows_names_and_says_that_there_is_more(self):
        for width in (390, 1280):
            self.browser.look(width=width)
            self.open("vectors", "--peak", "fp32=50T", "--peak", "memory=5T")
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            scroller = "document.querySelector('#kernels .scroll')"
            more = f"{scroller}.parentElement.classList.contains('more-right')"
            wider = self.browser.run(f"{scroller}.scrollWidth > {scroller}.clientWidth + 2")
            self.browser.wait(f"{more} === {json.dumps(wider)}")
            if width == 390:
                self.assertTrue(wider)
                place = "document.querySelector('#kernels td').getBoundingClientRect().left"
                before = self.browser.run(place)
                self.browser.run(f"{scroller}.scrollLeft = 1e6")
                self.browser.wait(f"!{more}")
                self.assertEqual(self.browser.run(place), before)
            ticks = self.browser.run(
                "[...document.querySelectorAll('#flop-over-time .tick, #roofline .tick')]"
                ".filter((t) => t.getAttribute('text-anchor') === 'middle').map((t) => "
                "{ const b = t.getBoundingClientRect(); return [b.left, b.right, b.top]; })")
            for (_, right, top), (left, _, below) in itertools.pairwise(ticks):
                self.assertTrue(right < left or top != below, "labels of an axis overlap")

    def test_paper_has_every_column_and_no_head_over_rows(self):
        self.open("vectors", "--peak", "fp32=50T", "--peak", "memory=5T")
        self.browser.run("scrollTo(0, 700)")
        self.browser.look(width=720, media="print")  # A4 less its margins
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        for position, in self.styles("th, td", "position"):
            self.assertEqual(position, "static")
        right = self.browser.run(
            "Math.max(...[...document.querySelectorAll('.card[open] td, .card[open] th, svg, "
            ".frame, .bar')].map((e) => e.getBoundingClientRect().right))")
        self.assertLessEqual(right, 720)
        self.assertEqual(
            self.browser.run(f"document.querySelectorAll('{KERNELS} tbody tr').length"),
            len(report("vectors")["kernels"]))
        self.assertFalse(self.browser.run(
            "[...document.querySelectorAll('.more-columns, .filter, .contents, .button')]"
            ".some((e) => e.checkVisibility())"))
        self.browser.run("dispatchEvent(new Event('afterprint'))")
        pdf = base64.b64decode(self.browser.call("Page.printToPDF", printBackground=True)["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))

    def test_text_can_be_read_light_and_dark(self):
        path = self.page("simulated", trace("simulated"))
        for theme in ("light", "dark"):
            self.browser.look(theme=theme)
            self.show(path)
            (ground,), = self.styles("body", "backgroundColor")
            self.assertEqual(luminance(ground) > 0.5, theme == "light")
            for selector, behind in (("h1", "body"), (".head .lines div", "body"),
                                     (".figure dt", ".figure"), (".figure .note", ".figure"),
                                     (".banner", ".banner"), ("td", ".card"), ("th", "th"),
                                     (".frame", ".frame"), ("footer", "body")):
                if selector == behind:
                    pairs = self.styles(selector, "color", "backgroundColor")
                else:
                    (back,), *_ = self.styles(behind, "backgroundColor")
                    pairs = [(color, back) for color, in self.styles(selector, "color")]
                self.assertTrue(pairs, selector)
                for color, back in pairs:
                    if not back.startswith("rgba(0, 0, 0, 0)"):  # the frame of the narrow ones
                        self.assertGreaterEqual(contrast(color, back), 4.5, (theme, selector))

    # --- two runs, many ranks --------------------------------------------------------------------

    def test_two_runs_side_by_side(self):
        one, other = trace("vectors"), trace("network")
        path = self.page("compare", "compare", one, other)
        self.show(path)
        sides = json.loads(run("compare", one, other, "--format", "json").stdout)
        rows = self.browser.run(
            "[...document.querySelectorAll('[data-key=compared_kernels] tbody tr:not(.space)')]"
            ".map((r) => [r.cells[0].title, r.cells[1].textContent])")
        self.assertEqual(rows, [[k["name"], k["change"]] for k in sides["compared_kernels"]])
        self.assertEqual(self.text("h1"), "A against B")
        screen = run("compare", one, other, "--color", "never").stdout.decode()
        for name, note in self.browser.run(
                "[...document.querySelectorAll('.figure')].map((f) => "
                "[f.querySelector('dt').textContent, f.querySelector('.note').textContent])"):
            self.assertRegex(screen, rf"(?m)^  {name} .* {re.escape(note)}$")
        # No ratio under the name of a share: both sides' figures, and the ratio in words.
        shown = dict(self.browser.run(
            "[...document.querySelectorAll('.figure')].map((f) => [f.querySelector('dt')."
            "textContent, f.querySelector('dd').firstChild.textContent.trim()])"))
        of_a, of_b = (100 * report(name)["figures"]["hfu"] for name in ("vectors", "network"))
        self.assertEqual(shown["HFU"], f"{of_a:.1f} % -> {of_b:.1f} %")
        self.assertEqual(list(shown)[0], "Per step")
        # Where the peak of each went, beside each other, with lines of their own to open.
        tops = self.browser.run("[...document.querySelectorAll('.sides > div')].map((e) => "
                                "[e.firstChild.textContent[0], e.getBoundingClientRect().top, "
                                "e.querySelectorAll('.fall[aria-controls]').length])")
        self.assertEqual([name for name, *_ in tops], ["A", "B"])
        self.assertEqual(tops[0][1], tops[1][1])
        self.assertGreater(min(lines for *_, lines in tops), 2)
        ids = self.browser.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        self.assertEqual(len(ids), len(set(ids)))
        # The largest changes of time, to one scale, to the right where B takes more.
        changes = {k["name"]: (k["gpu_time_b_ns"] or 0) - (k["gpu_time_a_ns"] or 0)
                   for k in sides["compared_kernels"]}
        most = max(map(abs, changes.values()))
        bars = self.browser.run(
            "[...document.querySelectorAll('#compared_kernels .change[data-by]')].map((row) => "
            "{ const [a, b] = [row.querySelector('i'), row.querySelector('.change-track')].map("
            "(e) => e.getBoundingClientRect()); return [row.firstChild.title, "
            "(a.width / b.width) * 2, a.left >= b.left + b.width / 2 - 1]; })")
        self.assertGreater(len(bars), 2)
        for name, width, more in bars:
            self.assertAlmostEqual(width, abs(changes[name]) / most, delta=0.01)
            self.assertEqual(more, changes[name] > 0)
        self.assertEqual(self.heads("compared_kernels")[:5],
                         ["kernel", "change", "time A", "time B", "time B/A"])
        widths = dict(self.browser.run("[...document.querySelectorAll('.bar')].map((b) => "
                                       "[b.ariaLabel, b.getBoundingClientRect().width])"))
        for what, figure in (("FLOP", "flop"), ("time", "gpu_time_ns")):
            a, b = (by(sides, "total")[figure][side] for side in "ab")
            shown = widths[f"shares of {what} A"] / widths[f"shares of {what} B"]
            self.assertAlmostEqual(shown, a / b, delta=0.02 * a / b)

    def test_words_of_a_comparison_are_whole(self):
        path = self.page("compare", "compare", trace("vectors"), trace("network"))
        for width in (1920, 1400, 900, 390):
            self.browser.look(width=width)
            self.show(path)
            self.assertEqual(self.browser.run(
                "[...document.querySelectorAll('td.text:not(:first-child), .change-name')]"
                ".filter((e) => e.textContent.length < 24 && e.scrollWidth > e.clientWidth)"
                ".map((e) => e.textContent)"), [], width)
            sizes = set(self.browser.run("[...document.querySelectorAll('.figure dd')].map("
                                         "(e) => getComputedStyle(e).fontSize)"))
            self.assertEqual(len(sizes), 1, width)

    def test_other_answers_are_pages_too(self):
        for name, arguments in (("peaks", ("peaks", "H100")),
                                ("explain", ("explain", "total", trace("training")))):
            self.show(self.page(name, *arguments))
            self.assertGreater(self.browser.run("document.querySelectorAll('td').length"), 4, name)

    @staticmethod
    def seconds_to_open(path):
        """CPU time of the page's thread, as other programs may take the machine's time."""
        with chromium.Chromium() as browser:
            browser.call("Performance.enable", timeDomain="threadTicks")
            browser.open(path)
            browser.wait("document.documentElement.dataset.ready === 'true'")
            browser.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
            metrics = browser.call("Performance.getMetrics")["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "ThreadTime")

    def test_a_job_of_1000_ranks_and_5000_kernels(self):
        traces = [trace(f"job{rank}") for rank in range(1000)]
        path = self.page("job", *traces, "--peak", "fp32=1T", "--peak", "memory=1T")
        self.assertLess(path.stat().st_size, 5_000_000)
        opened = min(self.seconds_to_open(path) for _ in range(3))
        self.assertGreater(opened, 0.01)
        self.assertLess(opened, 1)
        self.show(path)
        for key, rows in (("kernels", 5000), ("ranks", 1000)):
            self.assertEqual(self.browser.run(
                f"document.querySelector('table[data-key={key}]').ariaRowCount ?? "
                f"document.querySelector('table[data-key={key}]').getAttribute('aria-rowcount')"),
                str(rows + 1))
        self.assertLess(self.browser.run("document.getElementsByTagName('*').length"), 6000)
        # Every rank's column is as high as its time: 100 kernels of 1 us, of rank 7 of 2 us.
        self.browser.run("document.getElementById('ranks').scrollIntoView()")
        layers = self.browser.run("[...document.querySelectorAll('#ranks .layer')].map((l) => "
                                  "l.getAttribute('d'))")
        edges = [re.findall(r"[ML]([\d.]+) ([\d.]+)H([\d.]+)", path) for path in layers]
        tops = [min(float(layer[rank][1]) for layer in edges) for rank in range(1000)]
        bottom = max(float(y) for _, y, _ in edges[0])
        for rank in (0, 7, 999):
            self.assertAlmostEqual((bottom - tops[rank]) / (bottom - tops[1]),
                                   2 if rank == 7 else 1, delta=0.02)
        self.browser.click("#ranks .plot")
        chosen = self.browser.run("document.querySelector('#ranks tr[aria-selected=true]')"
                                  ".cells[0].textContent")
        self.assertEqual(self.text("#ranks .tip").splitlines()[0], chosen + ": 100.0 us")
        print(f"1,000 ranks, 5,000 kernels: {path.stat().st_size / 1e6:.1f} MB, shown after "
              f"{opened:.2f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    if chromium.PROGRAM is None:
        print("skipped: no Chromium; on Debian `apt-get install chromium` brings it")
        sys.exit(77)
    unittest.main(argv=["html_use_test.py", "-v"])
