"""Train a perceptron as perceptron.py does, with the data sharded over the workers."""

from perceptron import train

train(is_sharded=True)
