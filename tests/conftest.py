"""What all tests share: threads, and how they are spread over the workers."""

import os

import pytest

# One thread for each worker and for the kernels it starts: two workers with two
# threads each are slower than two with one. Set before anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile``, spread the slow tests that run a notebook as a whole.

    A file's tests stay on one worker: the cells of a notebook share a kernel. But the
    notebooks that ``test_notebooks.py`` runs have nothing to do with each other.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            if "::test_each_cell_may_run_twice[" in nodeid:
                return nodeid
            return super()._split_scope(nodeid)

    return Scheduling(config, log)
