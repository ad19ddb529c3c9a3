import io

import torch


def save_state(model, optimizer, scheduler, step: int) -> bytes:
    buffer = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "step": step,
        },
        buffer,
    )
    return buffer.getvalue()


def load_state(blob: bytes, model, optimizer, scheduler) -> int:
    state = torch.load(io.BytesIO(blob))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])  # <~ GS514
    scheduler.load_state_dict(state["scheduler"])  # <- GS514
    return state["step"]
