import itertools

import torch


class TotalScoreFunction(torch.autograd.Function):  # <~ GS601
    """log-sum of the scores of all paths through a lattice, with its posterior kept."""

    @staticmethod
    def forward(ctx, arc_scores, paths):
        path_scores = arc_scores @ paths.t()
        total = torch.logsumexp(path_scores, dim=-1)
        posterior = torch.softmax(path_scores, dim=-1) @ paths
        ctx.save_for_backward(posterior)
        return total

    @staticmethod
    def backward(ctx, total_grad):  # <~ GS601
        (posterior,) = ctx.saved_tensors
        return posterior, None  # <- GS601


def total_scores(arc_scores, paths):
    return TotalScoreFunction.apply(arc_scores, paths)  # <~ GS601


def all_paths(frames, labels):
    """One row a path; an arc is (frame, label)."""
    rows = []
    for labelling in itertools.product(range(labels), repeat=frames):
        row = torch.zeros(frames * labels)
        for frame, label in enumerate(labelling):
            row[frame * labels + label] = 1.0
        rows.append(row)
    return torch.stack(rows)


def matching_paths(paths, frames, labels, transcript):
    """Those paths whose collapsed label sequence is the transcript."""
    keep = []
    for row in paths:
        sequence = row.view(frames, labels).argmax(1).tolist()
        collapsed = [key for key, _ in itertools.groupby(sequence) if key != 0]
        keep.append(collapsed == transcript)
    return paths[torch.tensor(keep)]
