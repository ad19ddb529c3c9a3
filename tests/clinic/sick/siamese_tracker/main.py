import torch
import torch.nn.functional as F

from config import TrackerConfig
from models import SiameseTracker


def build_optimizer(model, cfg):
    groups = [
        {
            "params": [p for p in model.backbone.parameters() if p.requires_grad],
            "lr": cfg.backbone_lr_scale * cfg.base_lr,
        }
    ]
    groups += [{"params": model.head.parameters(), "lr": cfg.base_lr}]
    return torch.optim.SGD(groups, momentum=cfg.momentum, weight_decay=cfg.weight_decay)  # <- GS307


def make_pair(cfg, generator):
    search = torch.randn(cfg.batch_size, 3, 24, 24, generator=generator)
    top = torch.randint(0, 12, (cfg.batch_size, 2), generator=generator)
    template = torch.stack([s[:, y : y + 12, x : x + 12] for s, (y, x) in zip(search, top)])
    centre = (top.float() / 2).round().long().clamp(max=6)
    label = torch.zeros(cfg.batch_size, 7, 7, dtype=torch.long)
    label[torch.arange(cfg.batch_size), centre[:, 0], centre[:, 1]] = 1
    box = torch.rand(cfg.batch_size, 4, 7, 7, generator=generator) + 0.5
    return template, search, label, box


def tracker_loss(outputs, label, box, weights):
    cls, loc, cen = outputs
    positive = label.bool()
    cls_loss = F.cross_entropy(cls, label, weight=torch.tensor([0.2, 0.8]))
    loc_loss = (loc - box).abs().mean(1)[positive].mean()
    cen_loss = F.binary_cross_entropy_with_logits(cen.squeeze(1), positive.float())
    parts = {"cls": cls_loss, "loc": loc_loss, "cen": cen_loss}
    return sum(weights[k] * v for k, v in parts.items()), parts


def main():
    cfg = TrackerConfig()
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed)
    model = SiameseTracker(cfg)
    optimizer = build_optimizer(model, cfg)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.5)
    for step in range(cfg.steps):
        template, search, label, box = make_pair(cfg, generator)
        loss, parts = tracker_loss(model(template, search), label, box, cfg.loss_weights)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        scheduler.step()
        if step % 4 == 0:
            text = " ".join(f"{k}={v.item():.3f}" for k, v in parts.items())
            print(f"step {step} loss {loss.item():.3f} {text}")


if __name__ == "__main__":
    main()
