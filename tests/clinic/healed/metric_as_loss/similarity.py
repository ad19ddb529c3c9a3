"""A metric of the project."""


class Similarity:
    def __init__(self):
        self.history = []

    def compute(self, prediction, target):
        prediction = prediction - prediction.mean()
        target = target - target.mean()
        covariance = (prediction * target).mean()
        return covariance / ((prediction**2).mean() * (target**2).mean() + 1e-6).sqrt()

    def __call__(self, prediction, target):
        prediction, target = [t.detach() for t in (prediction, target)]
        value = self.compute(prediction, target)
        self.history.append(float(value))
        return value
