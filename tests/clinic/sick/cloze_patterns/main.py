import torch
from config import WrapperConfig
from data import few_shot_examples
from wrapper import ClozeWrapper


def main():
    torch.manual_seed(42)
    cfg = WrapperConfig()
    tokens, labels = few_shot_examples(cfg, cfg.shots)
    test_tokens, test_labels = few_shot_examples(cfg, 60)
    wrapper = ClozeWrapper(cfg)
    print(f"before: accuracy {wrapper.evaluate(test_tokens, test_labels):.3f}")
    wrapper.train(tokens, labels)
    print(f"after: accuracy {wrapper.evaluate(test_tokens, test_labels):.3f}")


if __name__ == "__main__":
    main()
