import torch


def discriminator_loss(real, fake):
    return torch.mean((1 - real) ** 2) + torch.mean(fake**2)


def generator_loss(fake):
    return torch.mean((1 - fake) ** 2)


def feature_loss(real, fake):
    return 2 * torch.mean(torch.abs(real.detach() - fake))


def mel_like_loss(real, fake, window=16):
    def frames(x):
        return torch.log1p(x.squeeze(1).unfold(-1, window, window // 2).pow(2).sum(-1))

    return 5 * torch.mean(torch.abs(frames(real) - frames(fake)))
