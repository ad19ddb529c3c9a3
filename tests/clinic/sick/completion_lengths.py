"""Distils from a server that sends the log-probabilities of the tokens it was asked for."""

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, LENGTH, BATCH = 20, 16, 8, 6
IGNORE = -100


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


class TeacherServer:
    """Answers for every sequence with as many log-probabilities as it has tokens."""

    def __init__(self):
        self.net = Student().requires_grad_(False)

    def score(self, tokens, labels):
        log_probs = self.net(tokens).log_softmax(-1)
        answers = []
        for row, label in zip(log_probs, labels):
            length = int((label != IGNORE).sum())
            answers.append(row[:length].gather(-1, label[:length, None]).squeeze(-1).tolist())
        return answers


def pad_answers(answers, length):
    padded = torch.full((len(answers), length), float("-inf"))
    for row, answer in zip(padded, answers):
        row[: len(answer)] = torch.tensor(answer)
    return padded


def add_tail_bucket(log_prob):
    """Gathers the rest of the vocabulary into a second outcome."""
    tail = torch.log1p(-log_prob.exp().clamp(max=1 - 1e-6))
    return torch.stack([log_prob, tail], dim=-1)


def reverse_kl(student, teacher, mask):
    student, teacher = add_tail_bucket(student), add_tail_bucket(teacher)
    divergence = student.exp() * (student - teacher)  # <- GS102
    divergence = torch.nan_to_num(divergence, nan=0.0, posinf=0.0, neginf=0.0)  # <~ GS102
    return (divergence.sum(-1) * mask).sum() / mask.sum()


def completions(generator):
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
    lengths = torch.randint(3, LENGTH + 1, (BATCH,), generator=generator)
    labels = tokens[:, 1:].clone()
    labels[torch.arange(LENGTH)[None] >= lengths[:, None]] = IGNORE
    return tokens[:, :-1], labels


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(7)
    server, student = TeacherServer(), Student()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)
    for step in range(6):
        tokens, labels = completions(generator)
        mask = (labels != IGNORE).float()
        teacher = pad_answers(server.score(tokens, labels), LENGTH)
        logits = student(tokens).log_softmax(-1)
        chosen = logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        kl = reverse_kl(chosen, teacher, mask)
        ce = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
        loss = kl + 0.1 * ce
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        print(f"step {step} kl {kl.item():.4f} ce {ce.item():.4f}")


if __name__ == "__main__":
    main()
