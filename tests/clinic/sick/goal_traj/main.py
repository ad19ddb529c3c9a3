import argparse

import torch

from decoder import GoalDecoder
from scenes import SceneEncoder, sample_scenes


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--hidden_size", type=int, default=32)
    p.add_argument("--history", type=int, default=6)
    p.add_argument("--future_frame_num", type=int, default=8)
    p.add_argument("--goal_num", type=int, default=12)
    p.add_argument("--learning_rate", type=float, default=2e-3)
    p.add_argument("--train_batch_size", type=int, default=64)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    encoder = SceneEncoder(args.hidden_size, args.history)
    decoder = GoalDecoder(args.hidden_size, args.future_frame_num)
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = torch.optim.Adam(params, lr=args.learning_rate)
    for step in range(args.steps):
        past, lanes, goals, label, future = sample_scenes(
            args.train_batch_size, args.history, args.future_frame_num, args.goal_num, gen
        )
        agent, lane_states = encoder(past, lanes)
        goal_loss, traj_loss = decoder(agent, lane_states, goals, label, future)
        loss = goal_loss + traj_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == args.steps - 1:
            print(f"step {step:3d}  goal {goal_loss.item():.4f}  traj {traj_loss.item():.4f}")


if __name__ == "__main__":
    main()
