"""A real Chromium, pages without network, and a JupyterLab with a live kernel."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from playwright.sync_api import sync_playwright

import browser as browser_tool
from normlab.widgets import static_page

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    path = browser_tool.find()
    if path is None:
        pytest.fail("No Chromium found: `make browser` finds or installs one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def watch(page):
    """Collect what a page must not do: complain, or ask another machine."""
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(error.stack))
    page.on(
        "console",
        lambda message: (
            message.type == "error" and page.complaints.append(message.text)
        ),
    )
    return page


@pytest.fixture(scope="session")
def pages(chromium):
    """One page for each set of options, with the network cut; made once, used again."""
    made = {}

    def page_with(**options):
        key = json.dumps(options, sort_keys=True)
        if key not in made:
            page = watch(chromium.new_context(**options).new_page())

            def cut(route):
                page.complaints.append(f"asked for {route.request.url}")
                route.abort()

            page.route(lambda url: not url.startswith(("file:", "blob:")), cut)
            made[key] = page
        return made[key]

    yield page_with
    for page in made.values():
        page.context.close()


@pytest.fixture
def open_widgets(pages, tmp_path):
    """Open widgets on a plain page, from a file."""
    opened = []

    def open_widgets(*widgets, width=1100, hash="", **options):
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(static_page(*widgets), encoding="utf-8")
        page = pages(viewport={"width": width, "height": 1000}, **options)
        opened.append(page)
        page.complaints.clear()
        page.goto(file.as_uri() + hash)
        for i in range(len(widgets)):
            page.locator(".normlab-widget[data-mounted=yes]").nth(i).wait_for()
        # Pictures are drawn when their width is known: a frame later.
        page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        )
        return page

    yield open_widgets
    for page in opened:
        assert page.complaints == []


class Lab:
    """JupyterLab in a browser: make a notebook, run it, ask its kernel."""

    def __init__(self, chromium, folder, url, token):
        self.folder, self.url, self.token = folder, url, token
        self.context = chromium.new_context(viewport={"width": 1300, "height": 1400})
        self.page = watch(self.context.new_page())

    def open(self, name, *cells, app="lab/tree"):
        """A new notebook with these code cells, opened, with its kernel ready."""
        notebook = {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"cell{i}",
                    "metadata": {},
                    "outputs": [],
                    "source": cell,
                }
                for i, cell in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.folder / name).write_text(json.dumps(notebook), encoding="utf-8")
        self.page.goto(f"{self.url}/{app}/{name}?token={self.token}&reset")
        self.wait_for_kernel()

    def wait_for_kernel(self):
        self.page.wait_for_function(
            """() => {
              const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
              return session?.isReady && session.session?.kernel?.status === "idle";
            }""",
            timeout=90_000,
        )

    def command(self, name):
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def run_all(self):
        self.command("notebook:run-all-cells")

    def python(self, code):
        """Run code in the notebook's kernel; return what it prints."""
        return self.page.evaluate(
            """async code => {
              const { session } = window.jupyterapp.shell.currentWidget.sessionContext;
              const request = { code, store_history: false };
              const future = session.kernel.requestExecute(request);
              let text = "";
              future.onIOPub = ({ content }) => {
                text += content.text ?? content.evalue ?? "";
              };
              await future.done;
              return text;
            }""",
            code,
        ).strip()


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    home = tmp_path_factory.mktemp("jupyter")
    settings = {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
    }
    for name, values in settings.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = "token-of-the-tests"
    environment = os.environ | {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.news_url=",
    ]
    log = (home / "log").open("w")
    server = subprocess.Popen(
        command, env=environment, stdout=log, stderr=log, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(240):
        if server.poll() is not None:
            pytest.fail(f"JupyterLab ended: {(home / 'log').read_text()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.25)
    lab = Lab(chromium, folder, url, token)
    yield lab
    lab.context.close()
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(30)
    log.close()
