"""The models of docs/gallery.md: a function for each, which returns its loss.

Try:
    gradscope backward examples/gallery/models.py::unet -o unet.svg
    gradscope backward examples/gallery/models.py::gpt2 -o gpt2.html
"""

import torch
from torch import nn
from torch.nn import functional as F


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    words = torch.randint(0, 50257, (1, 32))
    model = GPT2LMHeadModel(GPT2Config())
    return model(input_ids=words, labels=words).loss


def bert():
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    words = torch.randint(0, 30522, (2, 16))
    model = BertForMaskedLM(BertConfig())
    return model(input_ids=words, labels=words).loss


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    images = torch.randn(1, 3, 224, 224)
    model = ViTForImageClassification(ViTConfig())
    return model(images, labels=torch.tensor([1])).loss


def mamba():
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    words = torch.randint(0, 50280, (1, 4))
    model = MambaForCausalLM(MambaConfig())
    return model(input_ids=words, labels=words).loss


def resnet50():
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    images = torch.randn(2, 3, 64, 64)
    model = ResNetForImageClassification(ResNetConfig())
    return model(images, labels=torch.tensor([0, 1])).loss


class Double(nn.Sequential):
    """Two convolutions, as a UNet has them at every size."""

    def __init__(self, inside, outside):
        layers = []
        for channels in (inside, outside):
            layers += [
                nn.Conv2d(channels, outside, 3, padding=1, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(),
            ]
        super().__init__(*layers)


class Up(nn.Module):
    """Twice the size, joined with what had that size on the way down."""

    def __init__(self, inside, outside):
        super().__init__()
        self.up, self.join = nn.ConvTranspose2d(inside, outside, 2, 2), Double(inside, outside)

    def forward(self, x, skip):
        return self.join(torch.cat([skip, self.up(x)], 1))


class UNet(nn.Module):
    """Ronneberger et al., 2015, with fewer channels."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = Double(3, 8), Double(8, 16), Double(16, 32)
        self.bottom = Double(32, 64)
        self.up3, self.up2, self.up1 = Up(64, 32), Up(32, 16), Up(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        three = self.down3(F.max_pool2d(two, 2))
        x = self.bottom(F.max_pool2d(three, 2))
        return self.head(self.up1(self.up2(self.up3(x, three), two), one))


def unet():
    torch.manual_seed(0)
    images, classes = torch.randn(2, 3, 32, 32), torch.randint(0, 2, (2, 32, 32))
    model = UNet()
    return F.cross_entropy(model(images), classes)


def rnn():
    torch.manual_seed(0)
    w = (torch.randn(32, 32) * 0.17).requires_grad_()
    u = (torch.randn(8, 32) * 0.3).requires_grad_()
    h = torch.zeros(4, 32)
    for x in torch.randn(500, 4, 8):
        h = torch.tanh(h @ w + x @ u)
    return (h**2).mean()


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
        )


class Discriminator(nn.Sequential):
    def __init__(self):
        layers = [nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2)]
        super().__init__(*layers, nn.Linear(32, 1))


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = Generator(), Discriminator()

    def forward(self, noise):
        return self.discriminator(self.generator(noise))


def gan():
    """The loss of a generator whose pictures a good discriminator is sure to be false."""
    torch.manual_seed(0)
    model = GAN()
    with torch.no_grad():
        model.discriminator[-1].bias.fill_(-12)
    judged = torch.sigmoid(model(torch.randn(16, 8)))
    return torch.log(1 - judged).mean()


class Block(nn.Module):
    def __init__(self, width, slope=None, normed=True):
        super().__init__()
        self.norm = nn.LayerNorm(width) if normed else nn.Identity()
        self.fc, self.out, self.slope = nn.Linear(width, width), nn.Linear(width, width), slope

    def forward(self, x):
        h = torch.relu(self.fc(self.norm(x)))
        if self.slope:
            h = h**self.slope
        return x + self.out(h)


def blocks(make):
    torch.manual_seed(0)
    net = nn.Sequential(*(make(number) for number in range(12)), nn.Linear(16, 1))
    return net(torch.randn(8, 16)).square().mean()


def nan():
    """One block of twelve takes a square root, whose derivative at 0 is infinite."""
    return blocks(lambda number: Block(16, slope=0.5 if number == 4 else None))


def normed():
    return blocks(lambda _: Block(16))


def bare():
    """The same without norms."""
    return blocks(lambda _: Block(16, normed=False))


def chain():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 0.9999
    return y.sum()
