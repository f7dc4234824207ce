"""What the exercises share that ask which layer of a net is at fault."""

from torch import nn


def names_the_layer(culprit, innocent):
    """A judge for `Free`: the answer is to be the name of the layer at fault.

    `innocent` says for each other layer that might be suspected why it is not that one.
    """
    names = ", ".join(f"'{name}'" for name in sorted([culprit, *innocent]))

    def judge(answer):
        if isinstance(answer, nn.Module):
            return f"Answer with the name of the layer, one of {names}."
        name = str(answer).strip().removeprefix("net.")
        if name == culprit:
            return None
        return innocent.get(name, f"Look at the norms: answer with one of {names}.")

    return judge
