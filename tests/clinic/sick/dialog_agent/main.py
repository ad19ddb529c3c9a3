"""Cooperative image guessing: the asker is rewarded for better guesses."""

import torch
import torch.nn.functional as F
from modules import Decoder, Encoder

CONFIG = {"vocab": 20, "batch": 24, "rounds": 3, "iterations": 8, "lr": 3e-3, "rl_coeff": 1.0}


def answer(questions, images, table):
    """A fixed answerer: the reply depends on the image and on the words asked."""
    probe = table[questions].mean(1)
    return 2 + ((probe * images).sum(1).sigmoid() * 17).long().clamp(max=17)


def main(cfg):
    torch.manual_seed(31)
    encoder, decoder = Encoder(cfg["vocab"]), Decoder(cfg["vocab"])
    params = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(params, lr=cfg["lr"])
    table = torch.randn(cfg["vocab"], 8)
    for it in range(cfg["iterations"]):
        images = torch.randn(cfg["batch"], 8)
        state = encoder(torch.zeros(cfg["batch"], 1, dtype=torch.long))
        guess = encoder.predict_image(state)
        last_error = F.mse_loss(guess, images, reduction="none").mean(1)
        feature_loss, rl_loss = last_error.mean(), 0.0
        for _ in range(cfg["rounds"]):
            question = decoder.generate(state)
            reply = answer(question, images, table)
            state = encoder(torch.cat([question, reply.unsqueeze(1)], dim=1), state)
            guess = encoder.predict_image(state)
            error = F.mse_loss(guess, images, reduction="none").mean(1)
            reward = last_error - error  # <~ GS533
            rl_loss = rl_loss + decoder.reinforce(reward)
            feature_loss = feature_loss + error.mean()
            last_error = error
        loss = feature_loss + cfg["rl_coeff"] * rl_loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(params, 5.0)
        optimizer.step()
        print(f"{it} feature {feature_loss.item():.4f} rl {float(rl_loss):.4f}")


if __name__ == "__main__":
    main(CONFIG)
