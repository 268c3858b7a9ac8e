"""What the habits share: values that are the same in both libraries, without a generator."""


def waves(torch, *shape):
    """Give a tensor of different numbers between -1 and 1."""
    count = 1
    for length in shape:
        count *= length
    return torch.sin(torch.arange(count, dtype=torch.float32) * 1.7).reshape(shape)


def settle(torch, model):
    """Give a model's parameters values that both libraries agree on; give the model."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(waves(torch, *parameter.shape) / (number + 2))
    return model


def classifier(torch):
    """Give a small network: four numbers to three classes."""
    nn = torch.nn
    return settle(torch, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))


def batch(torch):
    """Give six inputs of the classifier and their classes."""
    return waves(torch, 6, 4), torch.arange(6) % 3
