import torch

from models import Classifier, SampleWeights
from trainer import Trainer

CONFIG = dict(inputs=10, classes=5, background=120, lr=0.05, lr_w=0.05, epochs=3, batch=20)


class Loader:
    def __init__(self, config):
        centres = 2 * torch.randn(config["classes"], config["inputs"])
        self.y = torch.arange(config["classes"]).repeat(24)
        self.x = centres[self.y] + torch.randn(len(self.y), config["inputs"])
        self.background = 3 * torch.randn(config["background"], config["inputs"])
        self.batch = config["batch"]

    def __iter__(self):
        inside = torch.randperm(len(self.x)).split(self.batch)
        outside = torch.randperm(len(self.background)).split(self.batch)
        for i, o in zip(inside, outside):
            yield self.x[i], self.y[i], self.background[o], o


def main():
    torch.manual_seed(0)
    loader = Loader(CONFIG)
    net = Classifier(CONFIG["inputs"], CONFIG["classes"])
    weights = SampleWeights(CONFIG["background"])
    trainer = Trainer(net, weights, CONFIG["lr"], CONFIG["lr_w"], CONFIG["classes"])
    for epoch in range(CONFIG["epochs"]):
        loss, loss_w, accuracy = trainer.train_epoch(loader)
        print(f"epoch {epoch} loss {loss:.4f} loss_w {loss_w:.4f} acc {accuracy:.3f}")
    print("heaviest background", weights.logits.topk(3).indices.tolist())


if __name__ == "__main__":
    main()
