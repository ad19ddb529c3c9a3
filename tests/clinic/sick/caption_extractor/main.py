import torch

from coca import CoCa, ViT
from extractor import Extractor


def image_text_batches(count, batch_size, vocab, generator):
    colours = torch.randn(vocab, 3, generator=generator)
    for _ in range(count):
        word = torch.randint(1, vocab, (batch_size,), generator=generator)
        noise = 0.3 * torch.randn(batch_size, 3, 16, 16, generator=generator)
        images = colours[word][:, :, None, None] + noise
        tail = (word[:, None] + torch.arange(4)) % vocab
        yield torch.cat([torch.zeros(batch_size, 1, dtype=torch.long), tail], 1), images


def main(dim=16, vocab=12, steps=16, lr=3e-3):
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(17)
    vit = ViT(dim)
    vit.mlp_head.requires_grad_(False)
    encoder = Extractor(vit, return_embeddings_only=True)
    model = CoCa(dim, vocab, encoder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    for step, (text, images) in enumerate(image_text_batches(steps, 8, vocab, generator)):
        caption, contrastive = model(text, images)
        loss = caption + 0.5 * contrastive
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0:
            print(f"{step}: caption {caption.item():.3f} contrastive {contrastive.item():.3f}")


if __name__ == "__main__":
    main()
