"""The exercises of chapter 9, the bug museum: one for each patient."""

from normlab.exercises import Choice, Code, Free, Pattern, Value, museum

# -- statistics in the wrong mode -----------------------------------------------------

drifting_features = Value(
    "9.1",
    question=(
        "Compare `backbone.state_dict()` before and after the training of the head. "
        "Answer with the set of the names of all entries that changed, such as "
        '`{"0.weight", "0.bias"}`.'
    ),
    answer={
        f"{layer}.{buffer}"
        for layer in (1, 4)
        for buffer in ("running_mean", "running_var", "num_batches_tracked")
    },
    mistakes=[
        (
            {"1.running_mean", "1.running_var", "4.running_mean", "4.running_var"},
            "These four moved, and two whole numbers with them: look at every entry.",
        ),
        (
            {"1.running_mean", "1.running_var", "1.num_batches_tracked"},
            "That is one of the layers. There is another of its kind.",
        ),
        (
            {"1.weight", "1.bias", "4.weight", "4.bias"},
            "Weights and biases are parameters, and all parameters were frozen: they "
            "are what they were. What else is in a state dict?",
        ),
    ],
    hints=[
        "Keep a copy of the state dict of a fresh `pretrained()`: "
        "`copy.deepcopy(backbone.state_dict())`, train, and compare entry by entry.",
        "`{name for name, old in before.items() if not old.equal(after[name])}`.",
    ],
    why="Every BatchNorm updates its three buffers in each training-mode forward pass. "
    "Buffers have no gradient, so `requires_grad` means nothing to them.",
)

waking_layers = Free(
    "9.2",
    judge=museum.judge_freeze,
    name="freeze",
    question=(
        "Write `freeze(net)`: afterwards every BatchNorm1d in `net`, at any depth, "
        "works as in eval mode, also after `net.train()`. Dropout and the linear "
        "layers go on as usual."
    ),
    hints=[
        "`net.train()` calls `train(True)` on every child. The child decides what that "
        "does.",
        "You can give one object a method of its own: `layer.train = ...`, a function "
        "that takes `mode=True` and returns the layer, unchanged.",
        "`layer.eval()` first, then "
        "`layer.train = lambda mode=True, layer=layer: layer`.",
    ],
    solution="""
def freeze(net):
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.eval()
            layer.train = lambda mode=True, layer=layer: layer
""",
    why="Whatever the training loop calls, the layer stays in eval mode. A subclass "
    "whose `train` calls `super().train(False)` does the same.",
    wrong=[
        (museum.eval_once, "woke up"),
        (museum.no_momentum, "still comes from the batch"),
        (museum.all_asleep, "Dropout is asleep"),
    ],
)

jumping_validation = Value(
    "9.3",
    question=(
        "One argument of one layer in the port has the wrong value. Which, and what "
        "should it be to do what the original did? Answer with a dict such as "
        '`{"argument": "eps", "value": 0.001}`.'
    ),
    answer={"argument": "momentum", "value": 0.01},
    mistakes=[
        (
            {"argument": "momentum", "value": 0.99},
            "That is the value it has. What does it weigh in each of the frameworks?",
        ),
        (
            {"argument": "momentum", "value": 0.1},
            "Right argument. 0.1 is PyTorch's default, which does what 0.9 does in "
            "Keras; the original had 0.99.",
        ),
        (
            {"argument": "eps", "value": 1e-5},
            "eps was copied with its value and means the same in both.",
        ),
    ],
    hints=[
        "Training outputs are fine, so look at what eval mode uses and training does "
        "not.",
        "Keras: new average = momentum * old average + (1 - momentum) * batch. "
        "PyTorch's documentation has it the other way round.",
    ],
    why="Keras weighs the old average, PyTorch the new batch: one is 1 minus the "
    "other.",
)

poisoned_average = Value(
    "9.4",
    question=(
        "Train a fresh `make_classifier()` on `recordings`, one batch at a time as in "
        "`train_skipping`. After which batch, counted from 0, does a buffer of the net "
        "first hold a value that is not finite?"
    ),
    answer=23,
    mistakes=[
        (
            24,
            "One too far: batches are counted from 0.",
        ),
        (
            59,
            "That is the last batch. The buffers went bad long before; look after "
            "every batch.",
        ),
    ],
    hints=[
        "The weights do not tell: the step with the bad loss was skipped. Look at "
        "`net.named_buffers()`.",
        "After each batch: "
        "`all(b.isfinite().all() for _, b in net.named_buffers())`. Is a look at the "
        "data alone enough here?",
    ],
    why="One batch is enough: from then on every update mixes NaN with something, and "
    "that is NaN.",
)


# -- buffers left behind --------------------------------------------------------------

lagging_teacher = Free(
    "9.5",
    judge=museum.judge_teacher,
    name="update_teacher",
    question=(
        "Write `update_teacher(teacher, student, decay)`, a better `follow`. The "
        "parameters stay an average, decay times the teacher's and 1 - decay times the "
        "student's; see to what is missing."
    ),
    hints=[
        "`net.parameters()` does not name all tensors on which the output depends.",
        "A buffer of the teacher, in eval mode, must fit the student's activations: "
        "copy it, or average it like the parameters.",
        "`for t, s in zip(teacher.buffers(), student.buffers()): t.copy_(s)`.",
    ],
    solution="""
@torch.no_grad()
def update_teacher(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.lerp_(s, 1 - decay)
    for t, s in zip(teacher.buffers(), student.buffers()):
        t.copy_(s)
""",
    why="The running statistics travel with the weights now. They are the student's, "
    "which nearly fits; re-estimated ones would fit the averaged weights exactly.",
    wrong=[
        (museum.parameters_alone, "has not moved. It is no parameter but a buffer"),
        (museum.hard_copy, "parameters are averaged"),
        (museum.turned_round, "is not 0.9 of the old"),
        (museum.shared_buffers, "share a tensor"),
    ],
)

half_loaded = Free(
    "9.6",
    judge=museum.judge_never_measured,
    name="never_measured",
    question=(
        "Write `never_measured(net)`: the list of the names, as in "
        "`net.named_modules()`, of all layers whose running statistics are still what "
        "a new layer has. Layers that keep none are not named."
    ),
    hints=[
        "What do `running_mean` and `running_var` of a new layer hold?",
        "With `track_running_stats=False` a layer has the attribute, but it is None: "
        '`getattr(layer, "running_mean", None)` serves both cases.',
        "All of the mean equal to 0 *and* all of the variance equal to 1.",
    ],
    solution="""
def never_measured(net):
    names = []
    for name, layer in net.named_modules():
        mean = getattr(layer, "running_mean", None)
        if mean is not None and not mean.any() and (layer.running_var == 1).all():
            names.append(name)
    return names
""",
    why="A mean of exactly 0 and a variance of exactly 1 in all channels: no data does "
    "that. Call it after every `load_state_dict(..., strict=False)`.",
    wrong=[
        (museum.by_counter, "whose counter says 500"),
        (museum.by_mean, "so it was measured"),
    ],
)

counted_twice = Value(
    "9.7",
    question=(
        "Which `momentum` must the BatchNorm of the checkpointed block get, so that "
        "its running statistics after any number of steps equal those of the plain "
        "net? Give at least four digits after the point."
    ),
    answer=1 - 0.9**0.5,
    decimals=4,
    mistakes=[
        (
            0.05,
            "Nearly. After two updates of 0.05 the old value keeps 0.95 * 0.95 = "
            "0.9025 of its weight; 0.9 is wanted.",
        ),
        (0.1, "That is the momentum it has, and the statistics differ."),
        (0.2, "The block moves too far already; this moves it farther."),
    ],
    hints=[
        "Print `num_batches_tracked` of both nets: how often does each block measure "
        "one and the same batch?",
        "Two updates with momentum p leave (1 - p)² of the old value. One update with "
        "0.1 leaves 0.9.",
    ],
    why="(1 - p)² = 0.9 gives p = 1 - √0.9 = 0.0513.",
)

company_of_others = Choice(
    "9.8",
    question="What makes the answer to one request depend on the others?",
    options={
        "a": "`eval()` did not reach the norm, because it is inside a `Sequential`.",
        "b": "The norm keeps no running statistics, so eval mode has none to use.",
        "c": "`torch.no_grad()` is missing.",
        "d": "The running statistics were measured on too few batches.",
    },
    answer="b",
    mistakes={
        "a": "`eval()` reaches every child; print `layer.training` and see.",
        "c": "Recording gradients changes no value of a forward pass.",
        "d": "Bad running statistics give bad answers, but the same ones in any "
        "company. And how many are there in the state dict?",
    },
    hints=[
        "Print `ranker.state_dict().keys()`. Which entries of a BatchNorm are missing?",
        "Look at the arguments of the norm: one of them decides what eval mode does.",
    ],
    why="With `track_running_stats=False` there is nothing stored, and eval mode takes "
    "the statistics of the batch, as training does.",
)

needless_bias = Free(
    "9.9",
    judge=museum.judge_drop_bias,
    name="drop_bias",
    question=(
        "Write `drop_bias(conv, norm)`, which takes the bias out of a trained `conv` "
        "in front of a BatchNorm2d, in place, so that neither the eval output nor the "
        "training output of the two changes."
    ),
    hints=[
        "What did `running_mean` average: the convolution's output with the bias or "
        "without?",
        "Without the bias every value in front of the norm is smaller by it, and so is "
        "the mean that should be subtracted.",
        "`norm.running_mean -= conv.bias.detach()`, then `conv.bias = None`.",
    ],
    solution="""
def drop_bias(conv, norm):
    norm.running_mean -= conv.bias.detach()
    conv.bias = None
""",
    why="x + b minus the mean of x + b is x minus the mean of x. In training the batch "
    "sees to that; in eval the stored mean must follow.",
    wrong=[
        (museum.bias_gone, "In eval mode the output moved by"),
        (museum.bias_zero, "still has a bias"),
        (museum.into_norm_bias, "training is not"),
    ],
)


# -- the wrong axes -------------------------------------------------------------------

lucky_size = Pattern(
    "9.10",
    question=(
        "Which values does this net's `LayerNorm(8)` average, on its input (N, C, H, W)"
        " = (16, 8, 8, 8)? Write the pattern of what it does, not of what was meant."
    ),
    answer="N C H [W]",
    mistakes=[
        (
            "N [C] H W",
            "That is what was meant: each pixel over its channels. Which axis is last?",
        ),
        (
            "N [C H W]",
            "That would be `LayerNorm((8, 8, 8))`. Only one size is named here.",
        ),
        ("N C [H W]", "Those are the sets of InstanceNorm. Only one size is named."),
    ],
    hints=[
        "The argument of LayerNorm holds the sizes of the *trailing* axes, and says "
        "nothing of channels.",
        "Leave all axes but the last as they are, and put brackets round that one.",
    ],
    why="LayerNorm takes the last axis, whose length happened to be 8 as well. Each "
    "row of pixels of each channel is normalized for itself.",
)

unequal_sensors = Free(
    "9.11",
    judge=museum.judge_sensor_norm,
    name="SensorNorm",
    question=(
        "Write the module `SensorNorm(features)`: BatchNorm for inputs of shape "
        "(N, L, features), with one mean per feature in training and running "
        "statistics in eval. It must work for any length L."
    ),
    hints=[
        "`nn.BatchNorm1d` keeps axis 1. Where is the axis that you want to keep?",
        "Hold a `nn.BatchNorm1d(features)` and swap two axes before and after it.",
        "`self.norm(x.transpose(1, 2)).transpose(1, 2)`.",
    ],
    solution="""
class SensorNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)
""",
    why="The features are on axis 1 while the norm looks at them, and back in their "
    "place afterwards.",
    wrong=[
        (museum.LastAxis, "the features come out with deviations"),
        (museum.AsItIs, "the features come out with deviations"),
        (museum.NoStatistics, "In eval mode it should use running statistics"),
    ],
)

silent_layer = Value(
    "9.12",
    question=(
        "Which layer of `flat_net` is at fault, and how many values share each of its "
        "means? Answer with a tuple (index in the net, number of values)."
    ),
    answer=(4, 1),
    mistakes=[
        (
            (1, 4),
            "Layer 1 is well: 12 channels in 3 groups are 4 values for each mean.",
        ),
        (
            (4, 10),
            "The right layer. But `GroupNorm(10, 10)` means 10 groups, not 10 values "
            "in a group.",
        ),
        (
            (4, 640),
            "The right layer. GroupNorm never averages over the batch: count within "
            "one sample.",
        ),
    ],
    hints=[
        "Send the inputs through the net layer by layer and print how much each output "
        "varies over the batch. Where does it drop to 0?",
        "Values per mean of `GroupNorm(G, C)` on (N, C): C / G.",
    ],
    why="A single value minus its own mean is 0, so the layer outputs its bias, "
    "whatever comes in.",
)

longest_neighbour = Free(
    "9.13",
    judge=museum.judge_masked,
    name="masked_batch_norm",
    question=(
        "Write `masked_batch_norm(x, mask)` for x of shape (N, C, L) and a mask "
        "(N, L) that is True where there is a word: normalize each channel with mean "
        "and biased variance of the valid positions alone (eps 1e-5, no affine), and "
        "return 0 at the others."
    ),
    hints=[
        "The sum over valid positions is easy: multiply by the mask first. What is it "
        "divided by?",
        "`valid = mask[:, None]` broadcasts over the channels; the count is "
        "`mask.sum()`.",
        "Two passes: the mean, then `((x - mean).square() * valid).sum((0, 2), "
        "keepdim=True) / mask.sum()`.",
    ],
    solution="""
def masked_batch_norm(x, mask):
    valid, count = mask[:, None], mask.sum()
    mean = (x * valid).sum((0, 2), keepdim=True) / count
    var = ((x - mean).square() * valid).sum((0, 2), keepdim=True) / count
    return (x - mean) / torch.sqrt(var + 1e-5) * valid
""",
    why="Padding is no data. Where it is neither summed nor counted, more of it "
    "changes nothing.",
    wrong=[
        (museum.hidden_afterwards, "Hiding it afterwards is too late"),
        (museum.count_of_all, "divide by the number of all"),
        (museum.not_hidden, "Set the padded positions to 0"),
    ],
)


# -- the arithmetic -------------------------------------------------------------------

textbook_norm = Code(
    "9.14",
    norm="LayerNorm",
    name="TutorialNorm",
    eps=1e-6,
    skip=("half precision", "two trailing axes"),
    question=(
        "Write the class `TutorialNorm(features, eps=1e-6)`, a better `HomeNorm`, that "
        "computes what `nn.LayerNorm(features, eps=1e-6)` does. Keep the parameters "
        "`weight` and `bias`."
    ),
    hints=[
        "There are two mistakes, and both are in the denominator.",
        "Which variance does `x.std()` use by default? And where does eps stand in the "
        "formula?",
        "`x.var(-1, keepdim=True, correction=0)`, eps added, then the root.",
    ],
    solution="""
class TutorialNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, correction=0)
        return self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias
""",
    why="The biased variance, eps beside it, and the root of both.",
    wrong=[
        (museum.TwoMistakes, "you divided the"),
        (museum.EpsOutside, "You add eps to the root"),
        (museum.Unbiased, "you divided the"),
    ],
)

weather_station = Value(
    "9.15",
    question=(
        "In which line of `StationNorm.forward`, by the numbers in its comments, is "
        "the value first badly wrong?"
    ),
    answer=2,
    mistakes=[
        (
            1,
            "The mean is right to seven digits. Print it and compare it with float64.",
        ),
        (
            3,
            "The difference in line 3 is fine: `x - mean` is exact to a few hundredths "
            "of a pascal. What is it divided by?",
        ),
        (4, "The root does what it is told; the NaN or the number comes from before."),
    ],
    hints=[
        "Compute each line in float32 and in float64 and compare the results.",
        "Squares of 101325 are near 10,000,000,000. float32 holds seven digits of "
        "that; the variance is about 25.",
    ],
    why="E[x²] and E[x]² agree in their first eight digits or more, and float32 has "
    "seven: what is left of the difference is rounding error, and may be negative.",
)

same_token = Code(
    "9.16",
    norm="rms_norm",
    by_hand=True,
    name="rms_norm",
    skip=("two trailing axes",),
    question=(
        "Write `rms_norm(x, normalized_shape, weight, eps)`, so that it is right in "
        "float16 too, over the last axis of x. The output has the input's dtype, and "
        "you call no norm of PyTorch."
    ),
    hints=[
        "The largest float16 is 65504. Which intermediate value is larger?",
        "Widen x with `.float()` before you square, and narrow the result with "
        "`.to(x.dtype)`.",
        "The weight may be float16 as well; `(wide * scale).to(x.dtype) * weight` or "
        "`(wide * scale * weight).to(x.dtype)`.",
    ],
    solution="""
def rms_norm(x, normalized_shape, weight, eps):
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale * weight).to(x.dtype)
""",
    why="The statistics are computed in float32, the result goes back to the dtype of "
    "the input.",
    wrong=[
        (museum.squares_in_float16, "You square in float16"),
        (museum.stays_wide, "another dtype"),
    ],
)

blank_pages = Choice(
    "9.17",
    question="What went wrong when the checkpoint was loaded?",
    options={
        "a": "The norm's weights were missing in the file, so they are still random.",
        "b": "The weights were saved in float16 and the small ones were lost.",
        "c": "The file stores each gain as its distance from 1, the layer multiplies "
        "by what is stored.",
        "d": "The layer needs a larger eps, since its inputs are small.",
    },
    answer="c",
    mistakes={
        "a": "All keys matched, and a new `nn.RMSNorm` starts at 1, not at random.",
        "b": "float16 holds 0.02 well enough. And rounding would not centre the gains "
        "at 0.",
        "d": "eps matters where activations are below 0.01 or so; look at the size of "
        "the gains instead.",
    },
    hints=[
        "Print the gains of both norms. Around which value do they lie? Around which "
        "would you expect the gains of a trained net?",
        "Suppose you wanted weight decay to pull the gains towards 1. How would you "
        "store them?",
    ],
    why="Gains around 0 in a net that works mean that 1 is added somewhere.",
)

shrinking_gains = Free(
    "9.18",
    judge=museum.judge_gains,
    name="gains_and_biases",
    question=(
        "Write `gains_and_biases(net)`: the names, as in `net.named_parameters()`, of "
        "all parameters of normalization layers, home-made ones included, whose class "
        'has "Norm" in its name. No others.'
    ),
    hints=[
        "`net.named_modules()` gives every layer with its path.",
        "`type(layer).__name__` is the name of the class. The parameters that a layer "
        "holds itself: `layer.named_parameters(recurse=False)`.",
    ],
    solution="""
def gains_and_biases(net):
    return [
        f"{path}.{name}"
        for path, layer in net.named_modules()
        if "Norm" in type(layer).__name__
        for name, _ in layer.named_parameters(recurse=False)
    ]
""",
    why="The name of the class finds what `isinstance` and the number of dimensions "
    "miss. In a net of your own, print the list once and read it.",
    wrong=[
        (museum.by_class, "You miss the gains of a `LlamaRMSNorm`"),
        (museum.by_dimensions, "a LayerNorm over three axes"),
        (museum.by_both, "belongs to no norm"),
    ],
)
