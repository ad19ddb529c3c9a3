import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("train")


def dice_loss(probs, onehot, eps=1e-6):
    inter = 2 * (probs * onehot).sum((2, 3))
    union = probs.sum((2, 3)) + onehot.sum((2, 3))
    return 1 - ((inter + eps) / (union + eps)).mean()


def train_model(model, loader, epochs, lr, amp=True, gradient_clipping=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-8)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    scaler = torch.amp.GradScaler("cpu", enabled=amp)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0.0
        for images, masks in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
                logits = model(images)
                loss = criterion(logits, masks)
                onehot = F.one_hot(masks, logits.shape[1]).permute(0, 3, 1, 2).float()
                loss = loss + dice_loss(F.softmax(logits, dim=1).float(), onehot)

            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)  # <- GS506
            scaler.step(optimizer)
            scaler.update()
            epoch_loss += loss.item()
        score = evaluate(model, loader)
        scheduler.step(score)
        log.info("epoch %d loss %.4f dice %.4f", epoch, epoch_loss / len(loader), score)
    return model


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    total = 0.0
    for images, masks in loader:
        prediction = model(images).argmax(1)
        inter = ((prediction == 1) & (masks == 1)).sum()
        total += (2 * inter / ((prediction == 1).sum() + (masks == 1).sum() + 1e-6)).item()
    return total / len(loader)
