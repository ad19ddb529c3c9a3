import torch


class RecomputeFunction(torch.autograd.Function):
    """Drops the activations of a block and runs it again when the gradient comes back."""

    @staticmethod
    def forward(ctx, run, n_inputs, *args):
        ctx.run = run
        ctx.inputs = list(args[:n_inputs])
        ctx.params = list(args[n_inputs:])
        with torch.no_grad():
            return run(*ctx.inputs)  # <~ GS602

    @staticmethod
    def backward(ctx, grad):
        inputs = [x.detach().requires_grad_(True) for x in ctx.inputs]
        with torch.enable_grad():
            output = ctx.run(*[x.view_as(x) for x in inputs])  # <- GS602
        grads = torch.autograd.grad(output, inputs + ctx.params, grad, allow_unused=True)
        return (None, None, *grads)


def recompute(block, inputs, enabled: bool):
    if not enabled:
        return block(*inputs)
    params = tuple(p for p in block.parameters() if p.requires_grad)
    return RecomputeFunction.apply(block.body, len(inputs), *inputs, *params)
