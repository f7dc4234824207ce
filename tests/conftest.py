"""What all tests share: threads, and notebooks that run twice."""

import os

# One thread for each worker and for the kernels it starts: two workers with two
# threads each are slower than two with one. Set before anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config):
    config.pluginmanager.import_plugin("twice")
