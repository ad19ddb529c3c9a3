import torch
import torch.nn.functional as F
from model import PretrainedLM
from tokenizer import WordTokenizer

CORPUS = [
    "the patient was given a small dose",
    "the doctor was asked about the dose",
    "a small child was given water",
    "the child asked the doctor about water",
]
DOMAIN = [
    "<drug> was given about a small <dose>",
    "the doctor asked about <drug> <dose>",
    "a child was given <drug> water",
    "the <drug> dose was <dose>",
]
SPECIAL = ["<drug>", "<dose>"]


def encode(tokenizer, lines, length=8):
    return torch.tensor([tokenizer.encode(line, length) for line in lines])


def make_optimizer(model, lr, weight_decay):
    no_decay = ("bias", "wte")
    groups = [
        {"params": [], "weight_decay": weight_decay},
        {"params": [], "weight_decay": 0.0},
    ]
    for name, param in model.named_parameters():
        groups[any(key in name for key in no_decay)]["params"].append(param)
    return torch.optim.AdamW(groups, lr=lr)


def lm_loss(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def main():
    torch.manual_seed(1)
    tokenizer = WordTokenizer(CORPUS)
    model = PretrainedLM(len(tokenizer))
    optimizer = make_optimizer(model, lr=5e-3, weight_decay=0.01)  # <- GS307
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)

    added = tokenizer.add_tokens(SPECIAL)
    model.resize_token_embeddings(len(tokenizer))  # <~ GS307
    print(f"added {added} tokens, the vocabulary has {len(tokenizer)} now")

    ids = encode(tokenizer, DOMAIN)
    for step in range(20):
        model.train()
        loss = lm_loss(model, ids)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 5 == 0:
            print(f"step {step:2d} loss {loss.item():.4f} ppl {loss.exp().item():.1f}")


if __name__ == "__main__":
    main()
