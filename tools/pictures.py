"""Draw the pictures that the README and the book's front page show.

    python tools/pictures.py

writes book/_static/picker.png and picker-dark.png, AxisPicker as a browser shows it,
and norms.png, the five norms side by side.
"""

import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import browser
from normlab import AxisPicker, draw_comparison
from normlab.widgets import static_page

FOLDER = Path(__file__).parents[1] / "book" / "_static"


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    picker = AxisPicker("N (G [C/G]) [H W]", shape=(4, 8, 5, 5), groups=4)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder, "picker.html")
        page_file.write_text(static_page(picker), encoding="utf-8")
        chromium = playwright.chromium.launch(
            executable_path=browser.find(), args=["--no-sandbox"]
        )
        for scheme, suffix in (("light", ""), ("dark", "-dark")):
            page = chromium.new_page(
                viewport={"width": 1000, "height": 900},
                device_scale_factor=2,
                color_scheme=scheme,
            )
            page.goto(page_file.as_uri())
            page.locator(".normlab").first.screenshot(
                path=FOLDER / f"picker{suffix}.png"
            )
        chromium.close()
    figure = draw_comparison((4, 8, 5, 5), G=4)[0].figure
    figure.savefig(FOLDER / "norms.png", dpi=150)
    for file in FOLDER.glob("*.png"):
        # Flat colours: a palette of 128 looks the same at a third of the size.
        picture = Image.open(file).convert("RGB")
        picture.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main()
