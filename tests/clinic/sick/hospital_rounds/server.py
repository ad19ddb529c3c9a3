import torch
import torch.nn.functional as F


class Server:
    def __init__(self, model, clients):
        self.model = model
        self.clients = clients

    def aggregate(self, uploads):
        total = sum(n for _, n in uploads)
        state = {}
        for key in self.model.state_dict():
            state[key] = sum(values[key] * (n / total) for values, n in uploads)
        self.model.load_state_dict(state)

    def round(self, local_epochs):
        uploads, losses = [], []
        for client in self.clients:
            client.receive(self.model)
            losses.append(client.fit(local_epochs))
            uploads.append(client.upload())
        self.aggregate(uploads)
        return sum(losses) / len(losses)

    @torch.no_grad()
    def evaluate(self, records):
        x, y = records
        logits = self.model(x)
        loss = F.binary_cross_entropy_with_logits(logits, y).item()
        return loss, ((logits > 0).float() == y).float().mean().item()
