"""Mistakes in the statistic, and in where eps stands."""

import math

import torch

from normlab.exercises.mistakes.base import CENTERED, Mistake
from normlab.exercises.subjects import values_per_set


class UnbiasedInForward(Mistake):
    name = "n-1 in the forward pass"
    norms = CENTERED
    says = (
        "Your output is too small by √((m−1)/m), here with m = {m}: you divided the "
        "variance by m−1. Normalize with the biased variance, divided by m "
        "(`correction=0`); `var()` divides by m−1 unless told otherwise."
    )

    def variance(self, centered, dims):
        return centered.var(dims, keepdim=True)

    def stored(self, var, count):
        return var


class OnePassVariance(Mistake):
    name = "E[x²] − E[x]²"
    # What is left when the digits have cancelled is noise; no two noises agree.
    noisy = ("values around 10000",)
    norms = CENTERED
    says = (
        "You compute the variance as E[x²] − E[x]². Both are huge where the mean is "
        "large, and nearly equal, so their digits cancel: around 10000 nothing is "
        "left. Subtract the mean first, then average the squares."
    )

    def measure(self, x, dims):
        mean = x.mean(dims, keepdim=True)
        return mean, x.square().mean(dims, keepdim=True) - mean.square()


class NoRoot(Mistake):
    name = "divided by the variance"
    says = (
        "You divide by the variance; divide by its square root, the standard "
        "deviation (for RMSNorm: by the root of the mean square)."
    )

    def deviation(self, var):
        return var + self.eps


class RootTwice(Mistake):
    name = "root taken twice"
    says = "You take the root twice. Once is enough: √(var + eps)."

    def deviation(self, var):
        return torch.sqrt(torch.sqrt(var + self.eps))


class Multiplied(Mistake):
    name = "multiplied by the deviation"
    says = (
        "You multiply by √(var + eps), so large values grow larger still. Divide by "
        "it; `torch.rsqrt` is one divided by the root."
    )

    def deviation(self, var):
        return torch.rsqrt(var + self.eps)


class SumForMean(Mistake):
    name = "sum instead of mean of the squares"
    says = (
        "Your output is too small by √m, here √{m}: you summed the squares and did not "
        "divide by their number. Take the mean of the squares."
    )

    def variance(self, centered, dims):
        return centered.square().sum(dims, keepdim=True)


class NotCentered(Mistake):
    name = "mean not subtracted"
    norms = CENTERED
    says = (
        "You divide by the right standard deviation, but the mean is still in your "
        "output: subtract it before you divide."
    )

    def center(self, x, mean):
        return x


class RootMeanSquare(Mistake):
    name = "RMS instead of mean and variance"
    norms = CENTERED
    says = (
        "You divide by the root mean square and subtract no mean: that is the way of "
        "RMSNorm. Subtract the mean, and average the squares of what is left."
    )

    def mean(self, x, dims):
        return x.new_zeros([1] * x.dim())


class CenteredRMS(Mistake):
    name = "mean subtracted in RMSNorm"
    norms = ("rms_norm",)
    says = (
        "You subtract the mean: that makes it a LayerNorm. RMSNorm leaves the mean in "
        "and divides x by √(mean of x²)."
    )

    def mean(self, x, dims):
        return x.mean(dims, keepdim=True)


class DeviationInRMS(Mistake):
    name = "standard deviation in RMSNorm"
    norms = ("rms_norm",)
    says = (
        "You divide by the standard deviation, which measures the distance from the "
        "mean. RMSNorm knows no mean: divide by √(mean of x²)."
    )

    def variance(self, x, dims):
        return x.var(dims, correction=0, keepdim=True)


class UnbiasedDeviationInRMS(DeviationInRMS):
    def variance(self, x, dims):
        return x.var(dims, keepdim=True)


class UnbiasedMeanSquare(Mistake):
    name = "n-1 in RMSNorm"
    norms = ("rms_norm",)
    says = (
        "You divide the sum of the squares by m−1, here with m = {m}. That makes up "
        "for a mean that was estimated from the same values; RMSNorm has none. Divide "
        "by m: the mean of the squares."
    )

    def variance(self, x, dims):
        m = math.prod(x.shape[d] for d in dims)
        return x.square().sum(dims, keepdim=True) / max(m - 1, 1e-12)


class SquareOfMean(Mistake):
    name = "square of the mean"
    norms = ("rms_norm",)
    says = (
        "You take the mean and square it. RMSNorm squares first and takes the mean "
        "of the squares: `x.square().mean(...)`."
    )

    def variance(self, x, dims):
        return x.mean(dims, keepdim=True).square()


class NoSquares(Mistake):
    name = "squares missing"
    norms = ("rms_norm",)
    says = (
        "You take the root of the mean of x itself, which is NaN where that mean is "
        "negative. Square first: `x.square().mean(...)`."
    )

    def variance(self, x, dims):
        return x.mean(dims, keepdim=True)


class MeanSizeInRMS(Mistake):
    name = "mean of the absolute values"
    norms = ("rms_norm",)
    says = (
        "You divide by the mean of |x|. RMSNorm squares, takes the mean and then the "
        "root: √(mean of x²)."
    )

    def variance(self, x, dims):
        return x.abs().mean(dims, keepdim=True).square()


class MeanDeviation(Mistake):
    name = "mean absolute deviation"
    norms = CENTERED
    says = (
        "You divide by the mean of |x − mean|. The standard deviation is the root of "
        "the mean of the squares (x − mean)²."
    )

    def variance(self, centered, dims):
        return centered.abs().mean(dims, keepdim=True).square()


class VarianceOfSamples(Mistake):
    name = "variance of each sample, averaged"
    norms = ("batch_norm",)
    says = (
        "Your variance is the average of the variances of the samples: each is "
        "measured from its own mean, and how far the samples' means lie apart is "
        "lost. Subtract the mean of the whole batch, then average the squares over "
        "[N] as well."
    )

    def variance(self, centered, dims):
        within = dims[1:] or dims
        own = centered.mean(within, keepdim=True)
        return (centered - own).square().mean(dims, keepdim=True)


# eps


class EpsOutside(Mistake):
    name = "eps outside the root"
    says = (
        "You add eps to the root: √var + eps. It belongs inside, √(var + eps): in "
        "front of small values that is a large difference, and the root's gradient "
        "stays finite at 0."
    )

    def deviation(self, var):
        return torch.sqrt(var) + self.eps


class NoEps(Mistake):
    name = "no eps"
    says = (
        "There is no eps in your root: where all values of a set are equal you "
        "divide 0 by 0 and get NaN. Divide by √(var + eps)."
    )

    def deviation(self, var):
        return torch.sqrt(var)


class EpsAsFloor(Mistake):
    name = "eps as a lower bound"
    says = (
        "You use eps as a lower bound of the variance. It is added: √(var + eps), also "
        "where the variance is larger."
    )

    def deviation(self, var):
        return torch.sqrt(var.clamp(min=self.eps))


class EpsAsFloorOfRoot(EpsAsFloor):
    name = "eps as a lower bound of the root"
    says = (
        "You use eps as a lower bound of what you divide by. It is added under the "
        "root, √(var + eps), also where the variance is larger."
    )

    def deviation(self, var):
        return torch.sqrt(var).clamp(min=self.eps)


class EpsAsFloorOfLength(EpsAsFloorOfRoot):
    norms = ("rms_norm",)

    def deviation(self, var):
        m = values_per_set(self.task)
        return torch.sqrt(var * m).clamp(min=self.eps) / m**0.5


class EpsSquared(Mistake):
    name = "eps squared"
    says = "You add eps² to the variance. Add eps itself: √(var + eps)."

    def deviation(self, var):
        return torch.sqrt(var + self.eps**2)


class EpsFixed(Mistake):
    name = "argument eps ignored"
    says = (
        "Your code uses one eps of its own and ignores the argument `eps`. Use the one "
        "that comes in."
    )

    def deviation(self, var):
        return torch.sqrt(var + self.task.eps)


class WrongEps(Mistake):
    """Another number for eps, whatever the argument says."""

    name = "another value for eps"
    used = None

    def deviation(self, var):
        return torch.sqrt(var + self.used)

    @classmethod
    def sentence(cls, task):
        return (
            f"Your eps is {cls.used:g}; here it is {task.eps:g}, unless the caller "
            "says otherwise. It matters where values are small."
        )
