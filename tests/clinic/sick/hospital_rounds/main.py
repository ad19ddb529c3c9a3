import torch
from client import Client
from models import RiskModel, make_hospital
from server import Server

ROUNDS, LOCAL_EPOCHS = 4, 2
SHIFTS = {"north": -0.3, "south": 0.0, "harbour": 0.4}


def main():
    torch.manual_seed(9)
    model = RiskModel()
    clients = [Client(name, make_hospital(shift), model) for name, shift in SHIFTS.items()]
    test_records = make_hospital(0.1, n=200)
    server = Server(model, clients)
    for number in range(ROUNDS):
        train_loss = server.round(LOCAL_EPOCHS)
        loss, accuracy = server.evaluate(test_records)
        print(f"round {number} train {train_loss:.4f} test {loss:.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
