"""The exercises of chapter 6, GroupNorm."""

from normlab.exercises import Code, Pattern

sets_of_groupnorm = Pattern(
    "6.1",
    question=(
        "`GroupNorm(G, C)` gets images of shape (N, C, H, W). Write the pattern of the "
        "values that share a mean."
    ),
    answer="N (G [C/G]) [H W]",
    mistakes=[
        (
            "N C [H W]",
            "These are the sets of InstanceNorm: every channel for itself. The "
            "channels of a group are averaged together.",
        ),
        (
            "N ([C/G] G) [H W]",
            "Your groups take every G-th channel. A group of GroupNorm holds "
            "neighbours: G stands in front of C/G.",
        ),
        (
            "[N] (G [C/G]) [H W]",
            "You average over the samples as well. GroupNorm never looks at another "
            "sample: N is kept.",
        ),
    ],
    hints=[
        "One axis is neither kept nor reduced as a whole: it is split in two.",
        "`(G [C/G])` splits the channels in G groups and averages over each group's "
        "C/G channels. What happens to N, H and W?",
    ],
    why="Each sample and each group has its own mean, over C/G channels and all H x W "
    "positions.",
)


def _groups_of_everything(x, num_groups, weight=None, bias=None, eps=1e-5):
    mean = x.mean((1, 2, 3), keepdim=True)
    var = x.var((1, 2, 3), correction=0, keepdim=True)
    y = (x - mean) / (var + eps).sqrt()
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


group_norm = Code(
    "6.2",
    norm="group_norm",
    name="group_norm",
    question=(
        "Write `group_norm(x, num_groups, weight, bias, eps)` for images of shape "
        "(N, C, H, W), without calling a norm of PyTorch."
    ),
    hints=[
        "Give the groups an axis of their own: reshape x to five axes.",
        "With `split = x.reshape(n, num_groups, c // num_groups, h, w)`, mean and "
        "biased variance run over the axes (2, 3, 4) with `keepdim=True`.",
        "Normalize, reshape to `x.shape`, then multiply by `weight.view(1, -1, 1, 1)` "
        "and add `bias.view(1, -1, 1, 1)`.",
    ],
    solution="""
def group_norm(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    split = x.reshape(n, num_groups, c // num_groups, h, w)
    centered = split - split.mean((2, 3, 4), keepdim=True)
    var = centered.square().mean((2, 3, 4), keepdim=True)
    y = (centered / torch.sqrt(var + eps)).reshape(x.shape)
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)
""",
    wrong=[(_groups_of_everything, "you averaged over N [C H W]")],
)
