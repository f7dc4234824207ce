"""What all tests share: threads, and how they are spread over the workers."""

import os

import pytest

# One thread for each worker and for the kernels it starts: two workers with two
# threads each are slower than two with one. Set before anything imports torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep the cells of a notebook on one worker; the other tests go anywhere."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
