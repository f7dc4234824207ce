"""Graded classes, with nbgrader: how an answer gets from a notebook to its grade.

`tools/assignment.py` (``make assignment``) builds the copies for a class. When one
comes back, nbgrader runs it, and three things of ours take part:

- `hand_in`: the last line of each graded cell. It shows the answer as bytes, no more.
- `normlab.grading.judge`: a process of its own that has never seen the notebook. It
  reads the bytes and asks the exercise's check, with the seed of the class.
- `normlab.grading.autograde`: the steps put into nbgrader. They mend a submission, run
  it within limits, call the judge, and write the verdict where nbgrader looks for it.

So nothing that a notebook does to normlab, PyTorch or the check reaches the judge: the
answer alone travels. What this cannot keep out stands in the instructor's guide.
"""

from normlab.grading.handin import hand_in

__all__ = ["hand_in"]
