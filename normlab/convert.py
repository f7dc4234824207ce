"""Swap the norms of a model: torch's for ours, and back."""

from torch import nn

from normlab import modules

__all__ = ["replace_norms"]

_PAIRS = [(getattr(nn, name), getattr(modules, name)) for name in modules.__all__]
_SWAPS = {
    "normlab": dict(_PAIRS),
    "torch": {ours: theirs for theirs, ours in _PAIRS},
}


def replace_norms(model, to="normlab"):
    """Turn every ``torch.nn`` norm of a model into ours, in place, and return it.

    ``to="torch"`` goes back. Weights, buffers, mode, hooks and names stay, and so does
    every module as an object: a layer used in two places is still one layer, and an
    optimizer keeps its parameters. For a changed copy, pass ``copy.deepcopy(model)``.

    Layers of exactly the types in `normlab.modules` are swapped. Subclasses (those
    that `torch.nn.utils.parametrize` makes, too) may compute something else, so they
    stay what they are, as do ``SyncBatchNorm`` and lazy layers not yet used.

    Ours are of other classes than torch's: code that asks for ``nn.LayerNorm`` by
    ``isinstance``, to spare it weight decay, say, passes over them, and ``torch.fx``
    needs a tracer that takes them for leaves. Do both before the swap, or swap back.

    Raises TypeError for what is no model, and ValueError for another `to`.

    >>> model = nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4))
    >>> type(replace_norms(model)[1]).__module__
    'normlab.modules'
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"replace_norms: the model must be an nn.Module, got {model!r}; pass a "
            "model, not its class."
        )
    if to not in tuple(_SWAPS):
        raise ValueError(
            f"replace_norms: to must be 'normlab' or 'torch', got {to!r}; pass one of "
            "the two."
        )
    for module in model.modules():
        # The two classes keep the same attributes under the same names and differ in
        # their methods alone, so the object stays and only its class changes.
        module.__class__ = _SWAPS[to].get(type(module), type(module))
    return model
