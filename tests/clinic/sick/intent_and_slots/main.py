import torch
from model import JointModel, make_utterances
from trainer import Trainer

OPTIONS = {"lr": 5e-3, "epochs": 4, "batches": 6, "batch_size": 24, "lr_step": [3]}


def main(opt=OPTIONS):
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(17)
    batches = [make_utterances(opt["batch_size"], generator) for _ in range(opt["batches"])]
    model = JointModel(n_words=40, n_intents=4, n_slots=5)
    optimizer = torch.optim.Adam(model.parameters(), opt["lr"])  # <- GS307
    trainer = Trainer(model, optimizer)
    for epoch in range(opt["epochs"]):
        trainer.run(batches, epoch)
        if epoch in opt["lr_step"]:
            for group in optimizer.param_groups:
                group["lr"] *= 0.1


if __name__ == "__main__":
    main()
