def create_config(**changes):
    config = {
        "num_features": 4,
        "time_window": 12,
        "zdims": 4,
        "hidden": 16,
        "batch_size": 24,
        "max_epochs": 10,
        "learning_rate": 5e-3,
        "scheduler": 0,
        "scheduler_step_size": 4,
        "scheduler_gamma": 0.2,
        "beta": 0.1,
        "kl_start": 1,
        "annealtime": 3,
    }
    config.update(changes)
    return config
