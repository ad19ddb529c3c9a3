import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR

from rnn_model import MotionVae


def kl_annealing(epoch, kl_start, annealtime):
    return min(1.0, max(0.0, (epoch - kl_start) / annealtime))


def run_epoch(model, data, config, weight, optimizer=None):
    model.train(optimizer is not None)
    total, batches = 0.0, data.split(config["batch_size"])
    for batch in batches:
        with torch.set_grad_enabled(optimizer is not None):
            recon, mean, logvar = model(batch)
            kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
            loss = F.mse_loss(recon, batch) + config["beta"] * weight * kl
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        total += loss.item()
    return total / len(batches)


def train_model(config, train_data, test_data):
    model = MotionVae(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"], amsgrad=True)
    if config["scheduler"]:
        scheduler = StepLR(
            optimizer, config["scheduler_step_size"], gamma=config["scheduler_gamma"]
        )
    else:
        scheduler = StepLR(optimizer, config["scheduler_step_size"], gamma=0)  # <- GS514
    best, waited = float("inf"), 0
    for epoch in range(1, config["max_epochs"] + 1):
        weight = kl_annealing(epoch, config["kl_start"], config["annealtime"])
        order = torch.randperm(len(train_data))
        train_loss = run_epoch(model, train_data[order], config, weight, optimizer)
        test_loss = run_epoch(model, test_data, config, weight)
        scheduler.step()
        waited = 0 if test_loss < best else waited + 1
        best = min(best, test_loss)
        print(f"epoch {epoch}: train {train_loss:.4f} test {test_loss:.4f} waited {waited}")
    return model
