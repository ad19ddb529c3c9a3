"""The programs that every tool is measured on.

Each is a module whose ``forward`` returns a scalar loss, and its inputs, so that tools that trace
a module and tools that start from a loss see the same work.  Random weights from a fixed seed, no
dropout, float32.  Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Program:
    """A module and what it is called with."""

    module: nn.Module
    inputs: tuple[Tensor, ...]

    def forward(self) -> Tensor:
        """The loss, with its graph."""
        loss: Tensor = self.module(*self.inputs)
        return loss

    def forget_gradients(self) -> None:
        """Set ``.grad`` of every leaf to None."""
        for leaf in (*self.module.parameters(), *self.inputs):
            leaf.grad = None

    def to(self, device: str) -> Program:
        """The same program elsewhere."""
        return Program(self.module.to(device), tuple(tensor.to(device) for tensor in self.inputs))


# ---------------------------------------------------------------------- tiny operations


class Scalars(nn.Module):
    """``3a + 2b² + log c``: the smallest real program."""

    def forward(self, leaf: Tensor) -> Tensor:
        a, b, c = leaf[0], leaf[1], leaf[2]
        y: Tensor = 3 * a + 2 * b * b + torch.log(c)
        return y


class Chain(nn.Module):
    """Elementwise operations on a vector of 16, one after the other."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        for position in range(self.length):
            match position % 4:
                case 0:
                    x = x * 0.999
                case 1:
                    x = x + 0.01
                case 2:
                    x = x.sin()
                case _:
                    x = x.tanh()
        return x.sum()


class Wide(nn.Module):
    """One leaf times each of many others, stacked and summed up."""

    def __init__(self, branches: int) -> None:
        super().__init__()
        self.leaves = nn.ParameterList([nn.Parameter(torch.randn(8)) for _ in range(branches)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([x * leaf for leaf in self.leaves]).sum()


class GradientPenalty(nn.Module):
    """Second order: the graph contains the backward pass of a small network."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        out = self.net(x).sum()
        gradients = torch.autograd.grad(out, [x, *self.net.parameters()], create_graph=True)
        loss: Tensor = out + sum(gradient.pow(2).sum() for gradient in gradients)
        return loss


class UnrolledLSTM(nn.Module):
    """An LSTM cell called step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.new_zeros(x.shape[1], 64)
        state = x.new_zeros(x.shape[1], 64)
        for step in x:
            hidden, state = self.cell(step, (hidden, state))
        return hidden.pow(2).sum()


# ---------------------------------------------------------------------- models


class Bottleneck(nn.Module):
    """The block that ResNet-50 repeats."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * 4
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.down: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.down = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        added: Tensor = self.relu(self.bn3(self.conv3(out)) + self.down(x))
        return added


class ResNet50(nn.Module):
    """ResNet-50 with 1,000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, channels = [], 64
        for width, repeats, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for repeat in range(repeats):
                blocks.append(Bottleneck(channels, width, stride if repeat == 0 else 1))
                channels = width * 4
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(2048, 1000)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        features = self.blocks(self.stem(x)).mean((2, 3))
        return F.cross_entropy(self.classes(features), target)


class DeepTransformer(nn.Module):
    """48 narrow encoder layers."""

    def __init__(self, layers: int = 48, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
            for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.pow(2).mean()


class LossOf(nn.Module):
    """A model of the transformers library, of which only the loss is wanted."""

    def __init__(self, inner: nn.Module, **arguments: Any) -> None:
        super().__init__()
        self.inner, self.arguments = inner, arguments

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.inner(x, labels=labels, **self.arguments).loss
        return loss


def gpt2(batch: int = 1, length: int = 64) -> Program:
    """GPT-2 small: 12 layers, 768 wide."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    ids = torch.randint(0, config.vocab_size, (batch, length))
    return Program(LossOf(GPT2LMHeadModel(config), use_cache=False), (ids, ids))


def llama() -> Program:
    """A small Llama of 16 layers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=172,
        num_hidden_layers=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    ids = torch.randint(0, 256, (1, 64))
    return Program(LossOf(LlamaForCausalLM(config), use_cache=False), (ids, ids))


def vit() -> Program:
    """ViT base: 12 layers, 768 wide."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(image_size=64, patch_size=16)
    config.num_labels = 10
    model = ViTForImageClassification(config)
    return Program(LossOf(model), (torch.randn(1, 3, 64, 64), torch.tensor([3])))


# ---------------------------------------------------------------------- by name


def _leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def _scalars() -> Program:
    return Program(Scalars(), (torch.tensor([0.1, 1.0, 0.0001], requires_grad=True),))


def _chain(length: int) -> Program:
    return Program(Chain(length), (_leaf(16),))


def _wide(branches: int) -> Program:
    return Program(Wide(branches), (_leaf(8),))


def _resnet50() -> Program:
    return Program(ResNet50(), (torch.randn(1, 3, 64, 64), torch.tensor([3])))


WORKLOADS: dict[str, Callable[[], Program]] = {
    "scalars": _scalars,
    "gradient-penalty": lambda: Program(GradientPenalty(), (_leaf(4, 16),)),
    "chain-100": partial(_chain, 100),
    "chain-1k": partial(_chain, 1_000),
    "chain-10k": partial(_chain, 10_000),
    "chain-100k": partial(_chain, 100_000),
    "wide-1k": partial(_wide, 1_000),
    "wide-10k": partial(_wide, 10_000),
    "gpt2": gpt2,
    "resnet50": _resnet50,
    "vit": vit,
    "llama-16": llama,
    "transformer-48": lambda: Program(DeepTransformer(), (torch.randn(2, 16, 32),)),
    "lstm-500": lambda: Program(UnrolledLSTM(), (torch.randn(500, 4, 32),)),
}


def build(name: str) -> Program:
    """The workload of this name, ready to train."""
    torch.manual_seed(0)
    program = WORKLOADS[name]()
    program.module.train()
    return program
