"""The curve to fit. Edit freely: a, b and c are fitted."""


def formula(x, a, b, c):
    decay = torch.exp(-b * x)  # noqa: F821
    return a * decay + c
