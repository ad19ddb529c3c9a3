class WeightStore:
    """Weights loaded from one flat file; modules refer to slices of it by name."""

    def __init__(self, state):
        self._shapes = {name: t.shape for name, t in state.items()}
        self._tensors = {name: t.detach().clone().requires_grad_(True) for name, t in state.items()}

    @classmethod
    def from_flat(cls, flat, shapes):
        state, offset = {}, 0
        for name, shape in shapes.items():
            n = shape.numel()
            state[name] = flat[offset : offset + n].view(shape)
            offset += n
        return cls(state)

    def __getitem__(self, name):
        return self._tensors[name]

    def named_parameters(self):
        return {name: self._export(t) for name, t in self._tensors.items()}  # <~ GS307

    def named_gradients(self):
        return {name: t.grad for name, t in self._tensors.items()}

    @staticmethod
    def _export(t):
        return t.detach().clone().requires_grad_(True)  # <- GS307
