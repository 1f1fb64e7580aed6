"""A function of your own: arrays (batch, n, d) in and out. ``thereexists build examples/data/my.py:f --n 2``."""


def f(X):
    return X[:, ::-1]  # the tokens in reverse order
