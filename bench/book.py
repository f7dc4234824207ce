"""How long the book's pages take on a phone until their explorers answer, in Chromium.

The profile is a mid-range phone: a processor four times slower than this one, 9 Mbit/s,
and 170 ms until each answer of a server that compresses text, as GitHub Pages does;
nothing is cached. *Live* is when the page's last explorer is mounted, counted from the
visit; *longest task* is the longest time afterwards in which the page does not answer,
the first math included.
"""

import functools
import gzip
import http.server
import re
import statistics
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "book" / "_build" / "html"
VISITS = 3
LIMIT = 2.0  # seconds
SLOWER = 4
NETWORK = {
    "offline": False,
    "latency": 170,  # milliseconds
    "downloadThroughput": 9e6 / 8,  # bytes a second
    "uploadThroughput": 9e6 / 8,
}

# Runs before the page does.
WATCH = """() => {
  window.seen = { live: 0, tasks: [] };
  new MutationObserver(() => { seen.live = performance.now(); }).observe(document,
    { attributes: true, attributeFilter: ["data-mounted"], subtree: true });
  new PerformanceObserver(list => list.getEntries().forEach(task =>
    seen.tasks.push([task.startTime, task.duration]))
  ).observe({ type: "longtask", buffered: true });
}"""
DONE = """() => document.readyState === "complete" &&
  [...document.querySelectorAll(".normlab-widget")]
    .every(place => place.dataset.mounted === "yes") &&
  (!document.querySelector(".math") || !!document.querySelector("mjx-container"))"""


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Serves files, text compressed."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        kind = self.guess_type(str(path))
        data, text = path.read_bytes(), re.search("text|javascript|json|svg", kind)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if text:
            data = compressed(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@functools.cache
def compressed(data):
    return gzip.compress(data)


def pages():
    """The pages with explorers, as paths from the book's folder."""
    for path in [*HTML.glob("book/*.html"), *HTML.glob("notebooks/*.html")]:
        if 'class="normlab-widget"' in path.read_text(encoding="utf-8"):
            yield path.relative_to(HTML).as_posix()


def visit(browser, url):
    """Seconds until the page is live, and of its longest task afterwards."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True
    )
    page = context.new_page()
    page.add_init_script(f"({WATCH})()")
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.emulateNetworkConditions", NETWORK)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.goto(url, wait_until="commit")
    page.wait_for_function(DONE)
    page.wait_for_timeout(300)
    seen = page.evaluate("() => seen")
    context.close()
    after = [length for start, length in seen["tasks"] if start > seen["live"]]
    return seen["live"] / 1000, max(after, default=0) / 1000


def table(only=""):
    """Rows of texts, the header first: the page, seconds."""
    sys.path.append(str(ROOT / "tools"))
    from playwright.sync_api import sync_playwright

    import build_book
    from browser import find

    said, right = build_book.build()
    if not right:
        raise RuntimeError(said)
    handler = functools.partial(Compressing, directory=HTML)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rows = [("page", "live s", "longest task s", f"live under {LIMIT:g} s")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu"]
        )
        for path in sorted(p for p in pages() if only in p):
            url = f"http://127.0.0.1:{server.server_port}/{path}"
            found = [visit(browser, url) for _ in range(VISITS)]
            live, task = map(statistics.median, zip(*found, strict=True))
            verdict = "yes" if live < LIMIT else "NO"
            rows.append((path, f"{live:.2f}", f"{task:.2f}", verdict))
        browser.close()
    server.shutdown()
    server.server_close()
    return rows


if __name__ == "__main__":
    for row in table(*sys.argv[1:2]):
        print("  ".join(text.ljust(34 if i == 0 else 15) for i, text in enumerate(row)))
