import torch
import torch.nn as nn
import torch.nn.functional as F

from encoder import TextEncoder
from pretrain import pretrain, sentences

CONFIG = {
    "vocab": 24,
    "length": 10,
    "pretrain_steps": 10,
    "encoder": {"trainable": False, "reduce_output": "mean"},
    "decoder": {"hidden": 32, "num_classes": 3},
    "trainer": {"steps": 30, "batch_size": 24, "learning_rate": 5e-3},
    "seed": 7,
}


class TextClassifier(nn.Module):
    def __init__(self, config, pretrained_state):
        super().__init__()
        self.encoder = TextEncoder(config["vocab"], pretrained_state, **config["encoder"])
        hidden = config["decoder"]["hidden"]
        self.decoder = nn.Sequential(
            nn.Linear(32, hidden), nn.ReLU(), nn.Linear(hidden, config["decoder"]["num_classes"])
        )

    def forward(self, tokens):
        return self.decoder(self.encoder(tokens))


def main():
    torch.manual_seed(CONFIG["seed"])
    gen = torch.Generator().manual_seed(CONFIG["seed"])
    state = pretrain(CONFIG["vocab"], CONFIG["length"], CONFIG["pretrain_steps"], gen)
    model = TextClassifier(CONFIG, state)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(params, lr=CONFIG["trainer"]["learning_rate"])
    for step in range(1, CONFIG["trainer"]["steps"] + 1):
        tokens, labels = sentences(
            CONFIG["trainer"]["batch_size"], CONFIG["vocab"], CONFIG["length"], gen
        )
        loss = F.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
