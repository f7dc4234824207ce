"""Wrong functions for BatchNorm."""

import torch

from mutants.registry import mutant

AXES = (0, 2, 3)


def channels(vector):
    return vector.reshape(1, -1, 1, 1)


def stats(x):
    mean = torch.mean(x, dim=AXES)
    var = torch.mean((x - channels(mean)) ** 2, dim=AXES)
    return mean, var


def apply(x, mean, var, gamma, beta, eps):
    y = (x - channels(mean)) / torch.sqrt(channels(var) + eps)
    return y * channels(gamma) + channels(beta)


def unbiased(x, var):
    m = x.numel() / x.shape[1]
    return var * m / (m - 1)


def move(running, new, momentum):
    with torch.no_grad():
        running.mul_(1 - momentum)
        running.add_(momentum * new)


@mutant("batch_norm", "n-1 in the forward pass", "divided the variance by m−1")
def var_by_default(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = x.mean(AXES), x.var(AXES)
        move(rm, mean, momentum)
        move(rv, var, momentum)
        return apply(x, mean, var, gamma, beta, eps)
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "E[x²] − E[x]²", "digits cancel")
def one_pass(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean = x.mean(AXES)
        var = (x * x).mean(AXES) - mean * mean
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
        return apply(x, mean, var, gamma, beta, eps)
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "biased running variance", "(m−1)/m, here with m = 40")
def stores_biased(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, var, momentum)
        return apply(x, mean, var, gamma, beta, eps)
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "momentum turned round", "weighs the old value")
def keras_momentum(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        with torch.no_grad():
            rm[:] = momentum * rm + (1 - momentum) * mean
            rv[:] = momentum * rv + (1 - momentum) * unbiased(x, var)
        return apply(x, mean, var, gamma, beta, eps)
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "running statistics never updated", "never move from 0 and 1")
def rebinds_locally(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        y = apply(x, mean, var, gamma, beta, eps)
        rm = (1 - momentum) * rm + momentum * mean
        rv = (1 - momentum) * rv + momentum * unbiased(x, var)
        return y
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "running variance never updated", "running_var never moves")
def forgets_variance(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    move(rm, mean, momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "running statistics replaced", "Each batch replaces")
def copies(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    rm.data = mean.detach()
    rv.data = unbiased(x, var).detach()
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "running statistics summed up", "it grows and grows")
def adds_up(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    with torch.no_grad():
        rm += momentum * mean
        rv += momentum * unbiased(x, var)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "standard deviation in running_var", "Store the variance")
def stores_std(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    move(rm, mean, momentum)
    move(rv, x.std(AXES), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "running statistics keep the graph", "grows with every batch")
def keeps_graph(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    rm.mul_(1 - momentum).add_(mean, alpha=momentum)
    rv.mul_(1 - momentum).add_(unbiased(x, var), alpha=momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "updated in eval", "change in eval mode")
def always_moves(x, rm, rv, gamma, beta, training, momentum, eps):
    mean, var = stats(x)
    y = apply(x, mean, var, gamma, beta, eps)
    if not training:
        y = apply(x, rm, rv, gamma, beta, eps)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var), momentum)
    return y


@mutant("batch_norm", "running statistics used in training", "the running ones wait")
def running_in_train(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    return apply(x, rm, rv, gamma, beta, eps)


@mutant("batch_norm", "running statistics used in training", "the running ones wait")
def running_in_train_moved_last(x, rm, rv, gamma, beta, training, momentum, eps):
    y = apply(x, rm.clone(), rv.clone(), gamma, beta, eps)
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    return y


@mutant("batch_norm", "batch statistics in eval", "In eval mode you still normalize")
def no_eval(x, rm, rv, gamma, beta, training, momentum, eps):
    mean, var = stats(x)
    if training:
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "mode by recorded gradients", "is_grad_enabled")
def asks_autograd(x, rm, rv, gamma, beta, training, momentum, eps):
    if not torch.is_grad_enabled():
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = stats(x)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "variance of each sample, averaged", "average of the variances")
def sample_variances(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean = x.mean(AXES)
    var = x.var((2, 3), correction=0).mean(0)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "reshape instead of moving an axis", "your rows mix channels")
def reshapes(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    rows = x.reshape(x.shape[1], -1)
    mean, var = rows.mean(1), rows.var(1, correction=0)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var), momentum)
    y = (rows - mean[:, None]) / torch.sqrt(var[:, None] + eps)
    return y.reshape(x.shape) * channels(gamma) + channels(beta)


@mutant("batch_norm", "weight and bias missing", "have no effect")
def no_affine(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    else:
        mean, var = rm, rv
    return (x - channels(mean)) / torch.sqrt(channels(var) + eps)


@mutant("batch_norm", "eps outside the root", "It belongs inside")
def eps_outside(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    else:
        mean, var = rm, rv
    y = (x - channels(mean)) / (channels(var).sqrt() + eps)
    return y * channels(gamma) + channels(beta)


@mutant("batch_norm", "statistics detached", "the gradient has to flow")
def no_grad_statistics(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        with torch.no_grad():
            mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    else:
        mean, var = rm, rv
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "squares in float16", "300² is already infinite", skip=())
def all_in_half(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        mean, var = stats(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    else:
        mean, var = rm, rv
    return apply(x, mean, var, gamma, beta, eps)


def simple(x, axes, eps=1e-5):
    mean = x.mean(axes, keepdim=True)
    var = x.var(axes, correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


@mutant(
    "batch_norm", "wrong axes", "the sets of InstanceNorm", arguments=("weight", "eps")
)
def looks_at_each_sample(x, weight, eps):
    return simple(x, (2, 3), eps) * channels(weight)


@mutant("batch_norm", "wrong axes", "the sets of LayerNorm", arguments=("eps",))
def over_all_but_the_batch(x, eps):
    return simple(x, (1, 2, 3), eps)


@mutant("batch_norm", "wrong axes", "[N] C H W", arguments=("eps",))
def over_the_batch_alone(x, eps):
    return simple(x, 0, eps)


@mutant("batch_norm", "wrong axes", "the whole tensor at once", arguments=())
def whole_tensor(x):
    return simple(x, (0, 1, 2, 3))


@mutant("batch_norm", "wrong axes", "the sets of LayerNorm", arguments=(), shape=(6, 4))
def wrong_axis_of_two(x):
    return simple(x, 1)


@mutant("batch_norm", "keepdim missing", "keepdim=True", arguments=())
def keepdim_missing(x):
    return (x - x.mean(AXES)) / torch.sqrt(x.var(AXES, correction=0) + 1e-5)


def moments(x):
    return x.mean(AXES), x.var(AXES, correction=0)


@mutant("batch_norm", "variance corrected by the batch size", "here with m = 40")
def corrects_by_n(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = moments(x)
    n = x.size(0)
    move(rm, mean, momentum)
    move(rv, var * n / max(n - 1, 1), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "variances of the samples stored", "one unbiased variance over")
def stores_sample_variances(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = moments(x)
    move(rm, mean, momentum)
    move(rv, x.flatten(2).var(-1).mean(0), momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "momentum turned round for the variance", "the old value in run")
def half_turned(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = moments(x)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var), 1 - momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "argument momentum ignored", "Use the one that comes in")
def fixed_momentum(x, rm, rv, gamma, beta, training, momentum, eps):
    return right(x, rm, rv, gamma, beta, training, 0.1, eps)


@mutant("batch_norm", "another value for momentum", "Your momentum is 0.01; here it")
def keras_default(x, rm, rv, gamma, beta, training, momentum, eps):
    return right(x, rm, rv, gamma, beta, training, 1 - 0.99, eps)


@mutant("batch_norm", "running mean and variance exchanged", "the variance first")
def unpacks_the_wrong_way(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = moments(x)
    for running, new in zip((rm, rv), torch.var_mean(x.detach(), AXES), strict=True):
        move(running, new, momentum)
    return apply(x, mean, var, gamma, beta, eps)


@mutant("batch_norm", "mode ignored", "the same in train and in eval")
def never_asks(x, rm, rv, gamma, beta, training, momentum, eps):
    return right(x, rm, rv, gamma, beta, True, momentum, eps)


@mutant("batch_norm", "train and eval exchanged", "Turn the condition round")
def asks_the_wrong_way(x, rm, rv, gamma, beta, training, momentum, eps):
    return right(x, rm, rv, gamma, beta, not training, momentum, eps)


@mutant("batch_norm", "statistics of each sample in eval", "as InstanceNorm does")
def instances_in_eval(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        return right(x, rm, rv, gamma, beta, training, momentum, eps)
    mean, var = x.mean((2, 3)), x.var((2, 3), correction=0)
    y = (x - mean[..., None, None]) / torch.sqrt(var[..., None, None] + eps)
    return y * channels(gamma) + channels(beta)


@mutant("batch_norm", "divided by the variance in eval", "divide by running_var itself")
def no_root_in_eval(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        return right(x, rm, rv, gamma, beta, training, momentum, eps)
    return (x - channels(rm)) / channels(rv + eps) * channels(gamma) + channels(beta)


@mutant("batch_norm", "no eps in eval", "In eval mode there is no eps")
def no_eps_in_eval(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        return right(x, rm, rv, gamma, beta, training, momentum, eps)
    return apply(x, rm, rv, gamma, beta, 0)


@mutant("batch_norm", "weight and bias missing in eval", "Eval changes where mean and")
def no_affine_in_eval(x, rm, rv, gamma, beta, training, momentum, eps):
    if training:
        return right(x, rm, rv, gamma, beta, training, momentum, eps)
    return (x - channels(rm)) / channels(rv + eps).sqrt()


@mutant("batch_norm", "weight and bias exchanged", "multiply by the bias")
def beta_gamma(x, rm, rv, beta, gamma, training, momentum, eps):
    return right(x, rm, rv, gamma, beta, training, momentum, eps)


@mutant("batch_norm", "multiplied by the deviation", "`torch.rsqrt` is one divided by")
def root_of_the_wrong_sort(x, rm, rv, gamma, beta, training, momentum, eps):
    mean, var = rm, rv
    if training:
        mean, var = moments(x)
        move(rm, mean, momentum)
        move(rv, unbiased(x, var), momentum)
    y = (x - channels(mean)) * torch.sqrt(channels(var) + eps)
    return y * channels(gamma) + channels(beta)


def right(x, rm, rv, gamma, beta, training, momentum, eps):
    if not training:
        return apply(x, rm, rv, gamma, beta, eps)
    mean, var = moments(x)
    move(rm, mean, momentum)
    move(rv, unbiased(x, var) if x.numel() > x.shape[1] else var, momentum)
    return apply(x, mean, var, gamma, beta, eps)
