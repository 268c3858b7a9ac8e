"""Values for the habits that are the same in both libraries, without random numbers."""


def waves(torch, *shape):
    """Return a tensor of different numbers between -1 and 1."""
    count = 1
    for length in shape:
        count *= length
    return torch.sin(torch.arange(count, dtype=torch.float32) * 1.7).reshape(shape)


def settle(torch, model):
    """Set a model's parameters to the same values in both libraries; return the model."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(waves(torch, *parameter.shape) / (number + 2))
    return model


def classifier(torch):
    """Return a small network with four inputs and three classes."""
    nn = torch.nn
    return settle(torch, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))


def batch(torch):
    """Return six inputs of the classifier and their classes."""
    return waves(torch, 6, 4), torch.arange(6) % 3
