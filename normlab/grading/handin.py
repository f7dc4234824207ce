"""Out of the notebook: an answer as bytes, shown as an output of its cell."""

import base64
import io
import linecache
import types

import cloudpickle

MIME = "application/x-normlab-answer"
_CELLS = "ipykernel"  # is part of the names under which cells are compiled
LIMIT = 32 * 2**20  # bytes; the nets of the course have some thousand


def hand_in(answer):
    """Show `answer` as bytes that the judge can read; for the graded cells.

    Functions and classes of the notebook travel with what they use of it, what is
    imported travels as a name. ValueError if the answer is nothing that can travel, or
    has more than `LIMIT` bytes.
    """
    from IPython.display import display

    data = packed(answer)
    display({MIME: base64.b64encode(data).decode(), "text/plain": ""}, raw=True)


def packed(answer):
    """The answer and the lines of the cells, which errors quote, as bytes."""
    lines = {
        name: "".join(entry[2])
        for name, entry in linecache.cache.items()
        if _CELLS in name and len(entry) == 4
    }
    file = io.BytesIO()
    try:
        _Pickler(file).dump((answer, lines))
    except Exception as error:
        raise ValueError(
            "This answer cannot be handed in, since it holds something that belongs to "
            f"the running notebook alone ({type(error).__name__}: {error})."
        ) from None
    data = file.getvalue()
    if len(data) > LIMIT:
        raise ValueError(
            f"This answer has {len(data) / 2**20:.0f} MiB; {LIMIT / 2**20:.0f} is the "
            "most that can be handed in. Does it use a large tensor from outside?"
        )
    return data


class _Pickler(cloudpickle.Pickler):
    """cloudpickle's, but code keeps the name of its cell, by which lines are found."""

    def reducer_override(self, obj):
        if isinstance(obj, types.CodeType) and _CELLS in obj.co_filename:
            make, values = cloudpickle.Pickler.dispatch_table[types.CodeType](obj)
            named = (obj.co_filename if v == "<dynamic-code>" else v for v in values)
            return make, tuple(named)
        return super().reducer_override(obj)
