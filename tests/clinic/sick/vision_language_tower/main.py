from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from vision import Connector, VisionTower


@dataclass
class TrainingArguments:
    tune_vision_tower: bool = True
    tune_connector: bool = True
    vision_lr: float = 1e-3
    learning_rate: float = 3e-3
    steps: int = 15
    text_dim: int = 16
    vocab: int = 20


class TinyVLM(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.vision_tower = VisionTower()
        self.connector = Connector(self.vision_tower.hidden_size, args.text_dim)
        self.embed_tokens = nn.Embedding(args.vocab, args.text_dim)
        self.decoder = nn.GRU(args.text_dim, args.text_dim, batch_first=True)
        self.lm_head = nn.Linear(args.text_dim, args.vocab)

    def forward(self, images, input_ids):
        image_tokens = self.connector(self.vision_tower(images))
        text = self.embed_tokens(input_ids)
        states, _ = self.decoder(torch.cat([image_tokens, text], dim=1))
        logits = self.lm_head(states[:, image_tokens.shape[1] :])
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten())


def set_trainable(model, args):
    model.vision_tower.requires_grad_(args.tune_vision_tower)
    model.connector.requires_grad_(args.tune_connector)


def create_optimizer(model, args):
    vision, rest = [], []
    for name, p in model.named_parameters():
        if p.requires_grad:
            (vision if name.startswith("vision_tower") else rest).append(p)
    groups = [{"params": rest, "lr": args.learning_rate}]
    if vision:
        groups.append({"params": vision, "lr": args.vision_lr})
    return torch.optim.AdamW(groups, weight_decay=0.01)


def make_batch(args, generator, size=6):
    answer = torch.randint(4, args.vocab, (size, 1), generator=generator)
    images = torch.randn(size, 3, 16, 16, generator=generator) * 0.2
    images += (answer.float() / args.vocab)[:, :, None, None]
    prompt = torch.tensor([[1, 2, 3]]).expand(size, -1)
    return images, torch.cat([prompt, answer, answer], 1)


def main():
    args = TrainingArguments()
    torch.manual_seed(30)
    generator = torch.Generator().manual_seed(31)
    model = TinyVLM(args)
    set_trainable(model, args)
    optimizer = create_optimizer(model, args)
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable parameters: {count}")
    for step in range(args.steps):
        loss = model(*make_batch(args, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
