"""How long the explorers take to repaint, in Chromium: AxisPicker with 2,000 cells.

From a change until the page is painted, without the wait for the screen's next frame:
script, style, layout and paint of the browser's main thread. The clock counts what else
runs on the machine meanwhile; processor time does not.
"""

import statistics
import sys
from pathlib import Path

SHAPE = (4, 20, 5, 5)  # 2,000 cells, all of them drawn
PRESSES = 60
LIMIT = 16  # milliseconds: one frame at 60 a second

TIMED = """async (presses, change) => {
  const times = [];
  for (let i = 0; i < presses; i++) {
    // A frame's callback runs just before its paint, and a message sent there is
    // delivered just after.
    times.push(await new Promise(done => requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      const start = performance.now();
      port1.onmessage = () => done(performance.now() - start);
      change(i);
      port2.postMessage("");
    })));
  }
  return times.sort((a, b) => a - b);
}"""

MEASURE = """async ({ presses, kind }) => {
  const picture = document.querySelector(".nl-picture");
  const squares = [...picture.querySelectorAll(".nl-cells path")]
    .flatMap(path => path.getAttribute("d").match(/M[^z]+z/g) ?? []);
  const box = picture.firstChild.getBoundingClientRect();
  const change = {
    press: i => document.querySelector(
      `[data-key="press ${["N", "C/G", "H", "W"][i % 4]}"]`).click(),
    groups: i => {
      const select = document.querySelector('[data-key="groups C"]');
      select.value = [2, 4, 5, 10][i % 4];
      select.dispatchEvent(new Event("change"));
    },
    point: i => {
      const [x, y] = squares[(i * 677) % squares.length].match(/[0-9.]+/g).map(Number);
      const at = { clientX: box.x + x, clientY: box.y + y, bubbles: true };
      picture.dispatchEvent(new PointerEvent("pointermove", at));
    },
  }[kind];
  return [squares.length, await timed(presses, change)];
}"""

SLIDE = """async ({ presses, label }) => {
  const slider = document.querySelector(`[aria-label="${label}"]`);
  const change = i => {
    slider.value = i % (Number(slider.max) + 1);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return await timed(presses, change);
}"""


def table():
    """Rows of texts, the header first: what changes, milliseconds."""
    sys.path.append(str(Path(__file__).parents[1] / "tools"))
    from playwright.sync_api import sync_playwright

    from browser import find
    from normlab import widgets

    picker = widgets.AxisPicker("N (G [C/G]) [H W]", SHAPE, 4)
    passed = (200, 4.0, 2.0, True)
    sliders = (
        ("BatchMates: shift 7 mates", {"shape": (8, 4, 3)}, "Shift the mates"),
        ("RunningStats: 200 batches", {"fed": (passed,)}, "Momentum"),
        ("GroupWalk: 2,000 cells", {"shape": SHAPE}, "Groups G"),
    )
    head = "AxisPicker, 2,000 cells", "median ms", "95% ms", "processor ms"
    rows = [(*head, f"median under {LIMIT} ms")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 1000})
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})

        def show(widget):
            page.set_content(widgets.static_page(widget))
            page.locator("[data-mounted=yes] svg").first.wait_for()
            page.evaluate(f"() => {{ window.timed = {TIMED}; }}")

        show(picker)
        page.locator(".nl-picture svg[width]").wait_for()
        for name, kind in (
            ("press an axis", "press"),
            ("choose the number of groups", "groups"),
            ("point at a cell", "point"),
        ):
            before = _processor_seconds(tools)
            cells, times = page.evaluate(MEASURE, {"presses": PRESSES, "kind": kind})
            if cells != 2000:
                raise RuntimeError(f"{cells} cells are drawn, not 2000")
            rows.append(_row(name, times, _processor_seconds(tools) - before))
        for name, state, label in sliders:
            show(getattr(widgets, name.split(":")[0])(**state))
            before = _processor_seconds(tools)
            times = page.evaluate(SLIDE, {"presses": PRESSES, "label": label})
            rows.append(_row(name, times, _processor_seconds(tools) - before))
        browser.close()
    return rows


def _row(name, times, seconds):
    median = statistics.median(times)
    most = times[int(0.95 * len(times))]
    verdict = "yes" if median < LIMIT else "NO"
    spent = 1000 * seconds / PRESSES
    return name, f"{median:.1f}", f"{most:.1f}", f"{spent:.1f}", verdict


def _processor_seconds(tools):
    found = tools.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")


if __name__ == "__main__":
    for row in table():
        print("  ".join(text.ljust(28 if i == 0 else 12) for i, text in enumerate(row)))
