from dataclasses import dataclass


@dataclass
class Options:
    num_classes: int = 12
    embedding: int = 16
    scale: float = 16.0
    margin: float = 0.3
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    epochs: int = 3
    batch_size: int = 24
    seed: int = 1
