import torch
import torch.nn as nn
import torch.nn.functional as F

SOBEL = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])


class ImageGradientLoss(nn.Module):
    """The mask's edges have to follow the edges of the grey image."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kernel_x", SOBEL.view(1, 1, 3, 3))
        self.register_buffer("kernel_y", SOBEL.t().contiguous().view(1, 1, 3, 3))

    def gradient(self, image):
        gx = F.conv2d(image, self.kernel_x, padding=1)
        gy = F.conv2d(image, self.kernel_y, padding=1)
        return gx, gy, torch.sqrt(gx**2 + gy**2 + 1e-6)

    def forward(self, pred, gray):
        size = pred.size()
        pred = pred.argmax(1).view(size[0], 1, size[2], size[3]).float()  # <- GS303
        ix, iy, mag_i = self.gradient(gray)
        mx, my, mag_m = self.gradient(pred)
        alignment = (ix / mag_i) * (mx / mag_m) + (iy / mag_i) * (my / mag_m)
        return (mag_m * (1 - alignment**2)).sum() / (mag_m.sum() + 1e-6)


class HairMatLoss(nn.Module):
    def __init__(self, gradient_weight=0.5):
        super().__init__()
        self.cross_entropy = nn.CrossEntropyLoss()
        self.image_gradient = ImageGradientLoss()
        self.gradient_weight = gradient_weight

    def forward(self, logits, gray, mask):
        bce = self.cross_entropy(logits, mask)
        edges = self.image_gradient(logits.softmax(1), gray)
        return bce + self.gradient_weight * edges, {"bce": bce, "edges": edges}
