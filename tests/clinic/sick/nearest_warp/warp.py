import torch
import torch.nn.functional as F


class HomographyWarper(torch.nn.Module):
    def __init__(self, h, w, mode="bilinear"):
        super().__init__()
        self.size, self.mode = (h, w), mode

    def forward(self, patch, theta):
        grid = F.affine_grid(
            theta, [patch.shape[0], patch.shape[1], *self.size], align_corners=True
        )
        return F.grid_sample(  # <- GS205
            patch,
            grid,
            mode=self.mode,
            align_corners=True,
        )
