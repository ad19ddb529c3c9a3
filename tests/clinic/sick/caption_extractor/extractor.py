import torch.nn as nn


def exists(val):
    return val is not None


class Extractor(nn.Module):
    """Wraps a vision transformer and returns the embeddings of its last block."""

    def __init__(self, vit, layer_name="transformer", return_embeddings_only=False):
        super().__init__()
        self.vit = vit
        self.latents = None
        self.layer_name = layer_name
        self.return_embeddings_only = return_embeddings_only
        self.hook_registered = False

    def _register_hook(self):
        layer = getattr(self.vit, self.layer_name)

        def hook(_, inputs, output):
            self.latents = output.clone().detach()  # <- GS303

        self.handle = layer.register_forward_hook(hook)
        self.hook_registered = True

    def eject(self):
        self.hook_registered = False
        self.handle.remove()
        return self.vit

    def forward(self, img):
        if not self.hook_registered:
            self._register_hook()
        pred = self.vit(img)
        latents, self.latents = self.latents, None
        assert exists(latents)
        return latents if self.return_embeddings_only else (pred, latents)
