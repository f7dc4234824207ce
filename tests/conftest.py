"""What all tests share: threads, their order, and notebooks that run twice."""

import os

# One thread for each worker and for the kernels it starts: two workers with two
# threads each are slower than two with one. Set before anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config):
    config.pluginmanager.import_plugin("twice")


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker is left alone with one at the end."""
    longest = "test_grading.py", "test_book.py", ".ipynb", "browser"

    def rank(item):
        names = (item.path.name, item.path.suffix, item.path.parent.name)
        return next((i for i, one in enumerate(longest) if one in names), len(longest))

    items.sort(key=rank)
