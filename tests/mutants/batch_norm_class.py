"""Wrong modules for BatchNorm."""

import torch
from torch import nn

from mutants.registry import mutant


class Base(nn.Module):
    """What the students share: a right BatchNorm but for what they override."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.make_parameters(num_features)
        self.make_buffers(num_features)

    def make_parameters(self, c):
        self.weight = nn.Parameter(torch.ones(c))
        self.bias = nn.Parameter(torch.zeros(c))

    def make_buffers(self, c):
        self.register_buffer("running_mean", torch.zeros(c))
        self.register_buffer("running_var", torch.ones(c))

    def forward(self, x):
        if self.training:
            mean = x.mean((0, 2, 3))
            var = x.var((0, 2, 3), correction=0)
            self.track(mean, var, x.numel() // x.shape[1])
        else:
            mean, var = self.running_mean, self.running_var
        mean, var, weight, bias = (
            v[None, :, None, None] for v in (mean, var, self.weight, self.bias)
        )
        return weight * (x - mean) / torch.sqrt(var + self.eps) + bias

    @torch.no_grad()
    def track(self, mean, var, m):
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_var += self.momentum * (var * m / (m - 1) - self.running_var)


@mutant("BatchNorm", "running statistics as plain attributes", "register_buffer")
class PlainTensors(Base):
    def make_buffers(self, c):
        self.running_mean = torch.zeros(c)
        self.running_var = torch.ones(c)

    def track(self, mean, var, m):
        keep, new = 1 - self.momentum, self.momentum
        unbiased = var.detach() * m / (m - 1)
        self.running_mean = keep * self.running_mean + new * mean.detach()
        self.running_var = keep * self.running_var + new * unbiased


@mutant("BatchNorm", "running statistics as parameters", "the optimizer changes")
class LearnedStatistics(Base):
    def make_buffers(self, c):
        self.running_mean = nn.Parameter(torch.zeros(c))
        self.running_var = nn.Parameter(torch.ones(c))


@mutant("BatchNorm", "running statistics keep the graph", "no_grad")
class Attached(Base):
    def track(self, mean, var, m):
        keep, new = 1 - self.momentum, self.momentum
        self.running_mean = keep * self.running_mean + new * mean
        self.running_var = keep * self.running_var + new * var * m / (m - 1)


@mutant("BatchNorm", "running variance started at 0", "Start it at 1")
class VarianceOfZero(Base):
    def make_buffers(self, c):
        self.register_buffer("running_mean", torch.zeros(c))
        self.register_buffer("running_var", torch.zeros(c))


@mutant("BatchNorm", "weight started at 0", "outputs nothing but its bias")
class ZeroWeight(Base):
    def make_parameters(self, c):
        self.weight = nn.Parameter(torch.zeros(c))
        self.bias = nn.Parameter(torch.zeros(c))


@mutant("BatchNorm", "weight started at random", "random numbers")
class RandomWeight(Base):
    def make_parameters(self, c):
        self.weight = nn.Parameter(torch.randn(c))
        self.bias = nn.Parameter(torch.zeros(c))


@mutant("BatchNorm", "bias started at 1", "Start it at 0")
class OneBias(Base):
    def make_parameters(self, c):
        self.weight = nn.Parameter(torch.ones(c))
        self.bias = nn.Parameter(torch.ones(c))


@mutant("BatchNorm", "weight is no parameter", "no optimizer finds it")
class PlainWeight(Base):
    def make_parameters(self, c):
        self.weight = torch.ones(c, requires_grad=True)
        self.bias = torch.zeros(c, requires_grad=True)


@mutant("BatchNorm", "weight is a buffer", "no optimizer finds it")
class BufferedWeight(Base):
    def make_parameters(self, c):
        self.register_buffer("weight", torch.ones(c))
        self.register_buffer("bias", torch.zeros(c))


@mutant("BatchNorm", "one weight for everything", "one for each channel")
class SingleWeight(Base):
    def make_parameters(self, c):
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))


@mutant("BatchNorm", "argument eps ignored", "ignores the argument `eps`")
class FixedEps(Base):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__(num_features, 1e-5, momentum)


@mutant("BatchNorm", "another value for eps", "Your eps is 0.001")
class KerasEps(Base):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, 1e-3, momentum)


@mutant("BatchNorm", "biased running variance", "you stored the biased variance")
class Biased(Base):
    @torch.no_grad()
    def track(self, mean, var, m):
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(var, self.momentum)


@mutant("BatchNorm", "momentum turned round", "weighs the old value")
class Turned(Base):
    @torch.no_grad()
    def track(self, mean, var, m):
        self.running_mean.lerp_(mean, 1 - self.momentum)
        self.running_var.lerp_(var * m / (m - 1), 1 - self.momentum)


@mutant("BatchNorm", "plain average of the batches", "as with `momentum=None`")
class Cumulative(Base):
    first = 0

    def make_buffers(self, c):
        super().make_buffers(c)
        self.num_batches_tracked = self.first

    def track(self, mean, var, m):
        self.num_batches_tracked += 1
        self.momentum = 1 / self.num_batches_tracked
        super().track(mean, var, m)


@mutant("BatchNorm", "plain average of the batches", "each new batch has that share")
class CumulativeFromOne(Cumulative):
    first = 1
