"""The exercise of chapter 0, to try out how checks, hints and solutions work."""

from normlab.exercises import Value

shape_of_the_mean = Value(
    "0.1",
    question=(
        "A tensor `x` has the shape (2, 7, 3). What is the shape of "
        "`x.mean(1, keepdim=True)`? Answer with a tuple."
    ),
    answer=(2, 1, 3),
    mistakes=[
        (
            (2, 3),
            "That is the shape without `keepdim`. With it, the axis that was averaged "
            "over stays, with size 1.",
        ),
        ((2, 7, 1), "That is the mean over axis 2. Axes are counted from 0."),
        ((1, 7, 3), "That is the mean over axis 0. Axes are counted from 0."),
        ((7, 1), "The axis that you name is the one that is averaged over."),
    ],
    hints=[
        "Which of the three sizes belongs to axis 1? It is averaged away.",
        "The others stay as they are, and `keepdim=True` leaves a 1 in the place of "
        "the 7.",
    ],
    why="Axis 1 has size 7; the 1 holds its place.",
)
