from dataclasses import dataclass, field


@dataclass
class TrackerConfig:
    base_lr: float = 0.02
    backbone_lr_scale: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    steps: int = 12
    batch_size: int = 6
    channels: int = 8
    head_layers: int = 2
    seed: int = 3
    loss_weights: dict = field(default_factory=lambda: {"cls": 1.0, "loc": 2.0, "cen": 1.0})
