import torch


class Base:
    """An environment: walks on a line of `length` cells."""

    def __init__(self, length=6):
        self.length = length

    def mask_invalid(self, states):
        return torch.stack(
            [states <= 0, states >= self.length - 1, torch.zeros_like(states).bool()], 1
        )

    def get_logprobs(self, policy_outputs, actions, mask):
        logits = policy_outputs.clone()
        logits[mask] = -1000.0
        return torch.log_softmax(logits, dim=1).gather(1, actions[:, None]).squeeze(1)

    def sample(self, policy_outputs, mask):
        with torch.no_grad():
            return torch.distributions.Categorical(
                logits=policy_outputs.masked_fill(mask, -1000.0)
            ).sample()
