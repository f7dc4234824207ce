"""Mistakes in gradients, types and memory."""

from normlab.exercises.mistakes.base import CENTERED, Mistake


class DetachedStatistics(Mistake):
    name = "statistics detached"
    says = (
        "The values are right, the gradient is not: your statistics are cut off from "
        "the graph (`detach`, `no_grad`, `.data` or `.item()`). They depend on the "
        "input, and the gradient has to flow through them."
    )

    def measure(self, x, dims):
        mean, var = super().measure(x, dims)
        return mean.detach(), var.detach()


class DetachedVariance(Mistake):
    name = "variance detached"
    norms = CENTERED
    says = (
        "The gradient flows through your mean, but not through your variance, which is "
        "cut off from the graph. It depends on the input as well."
    )

    def measure(self, x, dims):
        mean, var = super().measure(x, dims)
        return mean, var.detach()


class DetachedMean(Mistake):
    name = "mean detached"
    norms = CENTERED
    says = (
        "Your mean is cut off from the graph, so the gradient of the input no longer "
        "sums to 0 over a set. It depends on the input: let the gradient through."
    )

    def measure(self, x, dims):
        mean = self.mean(x, dims).detach()
        return mean, self.variance(x - mean, dims)


# Types and memory


class SquaresInHalf(Mistake):
    name = "squares in float16"
    # Where it overflows depends on the order of the sums.
    noisy = ("half precision",)
    says = (
        "You square in float16, where 300² is already infinite. Compute in float32 "
        "(`x.float()`) and return to the input's dtype at the end."
    )

    def widen(self, x):
        return x

    @classmethod
    def plausible(cls, got):
        return got.get("dtype") == "torch.float16"


class OutputWide(Mistake):
    name = "output dtype changed"
    says = (
        "Your output has another dtype than the input. Compute in float32 where that "
        "is needed, but end with `.to(x.dtype)`."
    )

    def widen(self, x):
        return x.float()

    def narrow(self, y, dtype):
        return y


class OutputWideParametersToo(OutputWide):
    def weight_and_bias(self, y):
        return (t if t is None else t.float() for t in super().weight_and_bias(y))


class InputChanged(Mistake):
    name = "input changed in place"
    # In whatever way it is changed, and whichever view of it autograd complains about.
    noisy = (
        "the input afterwards",
        "the gradient of the input",
        "the running statistics after three steps",
    )
    says = (
        "Your code changes the input tensor itself (an operation with `_` at its "
        "end, or `-=`, `/=`, or an assignment into it). Others still need it: make a "
        "new tensor."
    )

    def center(self, x, mean):
        return x.sub_(mean) if self.task.center else x

    def normalize(self, x, mean, var):
        return self.center(x, mean).div_(self.deviation(var))

    @classmethod
    def plausible(cls, got):
        return "error" not in got or "in-place" in str(got["error"])
