import torch

from config import create_config
from rnn_vae import train_model


def strides(count, config):
    t = torch.arange(config["time_window"]).view(1, -1, 1)
    pace = 0.3 + 0.7 * torch.rand(count, 1, 1)
    phase = 6.28 * torch.rand(count, 1, config["num_features"])
    return torch.sin(pace * t + phase) + 0.05 * torch.randn(
        count, config["time_window"], config["num_features"]
    )


def main():
    torch.manual_seed(0)
    config = create_config(scheduler=0)
    data = strides(96, config)
    train_model(config, data[:72], data[72:])


if __name__ == "__main__":
    main()
