import torch


def log_loss(target, prob):
    pos_loss = target * (0 - torch.log(prob))  # <~ GS101
    neg_loss = (1 - target) * (0 - torch.log(1 - prob))  # <- GS101
    return pos_loss, neg_loss


def detection_loss(output, target, cfg):
    """Mean over the batch of the confidence term and the box term."""
    pred_conf = torch.sigmoid(output[:, 0])
    respond_bbox = target[:, 0]
    pos_loss, neg_loss = log_loss(respond_bbox, pred_conf)
    conf_loss = (pos_loss + cfg["noobj_weight"] * neg_loss).sum((1, 2)).mean()

    pred_box = torch.sigmoid(output[:, 1:])
    box_err = (pred_box - target[:, 1:]) ** 2
    box_loss = (respond_bbox.unsqueeze(1) * box_err).sum((1, 2, 3)).mean()
    return conf_loss, cfg["box_weight"] * box_loss
