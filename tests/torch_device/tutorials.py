"""Programs in the style of PyTorch's tutorials and examples, which take the device and a generator.

Each returns numbers of some steps: losses, accuracies, sums of results. Random numbers that matter
are drawn on the CPU, so that they are the same on each device.
"""

import collections
import math

import torch
from torch import nn, optim
from torch.nn import functional as F

#: Name -> program.
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def stepped(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@program
def dcgan(device, generator):
    def initialize(module):
        name = module.__class__.__name__
        if "Conv" in name:
            nn.init.normal_(module.weight.data, 0.0, 0.02)
        elif "BatchNorm" in name:
            nn.init.normal_(module.weight.data, 1.0, 0.02)
            nn.init.constant_(module.bias.data, 0)

    painter = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    for network in (painter, critic):
        network.apply(initialize)
        network.to(device)
    of_critic = optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_painter = optim.Adam(painter.parameters(), lr=2e-4, betas=(0.5, 0.999))
    numbers = []
    for _ in range(3):
        critic.zero_grad()
        label = torch.full((4,), 1.0, dtype=torch.float, device=device)
        real = torch.randn(4, 3, 8, 8, generator=generator).to(device)
        error = F.binary_cross_entropy(critic(real).view(-1), label)
        error.backward()
        fake = painter(torch.randn(4, 8, 1, 1, generator=generator).to(device))
        label.fill_(0.0)
        F.binary_cross_entropy(critic(fake.detach()).view(-1), label).backward()
        of_critic.step()
        painter.zero_grad()
        label.fill_(1.0)
        error_of_painter = F.binary_cross_entropy(critic(fake).view(-1), label)
        error_of_painter.backward()
        of_painter.step()
        numbers += [error.item(), error_of_painter.item()]
    return numbers


@program
def names_by_characters(device, generator):
    hidden_layer, output_layer = nn.Linear(26, 16).to(device), nn.Linear(26, 4).to(device)
    numbers = []
    for round in range(4):
        line = torch.zeros(5, 1, 10, device=device)
        for at in range(5):
            line[at][0][(at * 3 + round) % 10] = 1
        hidden = torch.zeros(1, 16, device=device)
        for at in range(line.size()[0]):
            combined = torch.cat((line[at], hidden), 1)
            hidden, output = hidden_layer(combined), output_layer(combined).log_softmax(1)
        loss = F.nll_loss(output, torch.tensor([round], dtype=torch.long, device=device))
        loss.backward()
        for parameter in [*hidden_layer.parameters(), *output_layer.parameters()]:
            if parameter.grad is not None:
                parameter.data.add_(parameter.grad.data, alpha=-0.05)
                parameter.grad.zero_()
        numbers += [loss.item(), output.topk(1)[1][0].item()]
    return numbers


@program
def variational_autoencoder(device, generator):
    encoder, decoder = nn.Linear(20, 8).to(device), nn.Linear(4, 20).to(device)
    optimizer = optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
    numbers = []
    for _ in range(4):
        x = torch.rand(8, 20, generator=generator).to(device)
        mean, log_variance = encoder(x).chunk(2, 1)
        noise = torch.randn(8, 4, generator=generator).to(device)
        drawn = torch.sigmoid(decoder(mean + noise * torch.exp(0.5 * log_variance)))
        error = F.binary_cross_entropy(drawn, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        numbers.append(stepped(optimizer, error + divergence))
    return numbers


@program
def words_with_tied_weights(device, generator):
    embedding, lstm, output = nn.Embedding(20, 8), nn.LSTM(8, 8, 2), nn.Linear(8, 20)
    output.weight = embedding.weight
    model = nn.ModuleList([embedding, lstm, output]).to(device)
    state = tuple(next(model.parameters()).new_zeros(2, 4, 8) for _ in range(2))
    numbers = []
    for _ in range(3):
        words = torch.randint(20, (6, 4), generator=generator).to(device)
        state = tuple(one.detach() for one in state)
        model.zero_grad()
        found, state = lstm(embedding(words[:-1]), state)
        loss = F.cross_entropy(output(found).view(-1, 20), words[1:].view(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.5)
        numbers += [loss.item(), norm.item()]
    return numbers


@program
def deep_q_learning(device, generator):
    Transition = collections.namedtuple("Transition", "state action next reward")
    policy, target = (nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)) for _ in "12")
    target.load_state_dict(policy.to(device).state_dict())
    target.to(device)
    optimizer = optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    memory = collections.deque([], maxlen=20)
    for step in range(20):
        state = torch.randn(1, 4, generator=generator).to(device)
        action = policy(state).max(1).indices.view(1, 1)
        following = None if step % 5 == 0 else state + 1
        memory.append(
            Transition(state, action, following, torch.tensor([step % 3.0], device=device))
        )
    numbers = []
    for _ in range(3):
        batch = Transition(*zip(*memory, strict=True))
        goes_on = torch.tensor([one is not None for one in batch.next], device=device)
        values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        following = torch.zeros(20, device=device)
        with torch.no_grad():
            states = torch.cat([one for one in batch.next if one is not None])
            following[goes_on] = target(states).max(1).values
        wanted = following * 0.99 + torch.cat(batch.reward)
        loss = F.smooth_l1_loss(values, wanted.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        mixed = target.state_dict()
        for name, value in policy.state_dict().items():
            mixed[name] = value * 0.05 + mixed[name] * 0.95
        target.load_state_dict(mixed)
        numbers.append(loss.item())
    return numbers


@program
def style_transfer(device, generator):
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    # In float32, rounding grows by the quasi-Newton steps.
    layers.to(device, torch.float64).requires_grad_(False)

    def gram(features):
        rows = features.view(8, -1)
        return torch.mm(rows, rows.t()).div(rows.numel())

    images = torch.rand(2, 1, 3, 16, 16, generator=generator, dtype=torch.float64)
    content, style = images.to(device)
    image = content.clone().requires_grad_(True)
    optimizer = optim.LBFGS([image], max_iter=5)
    numbers = []

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        features = layers(image)
        loss = 1e3 * F.mse_loss(gram(features), gram(layers(style)))
        loss = loss + F.mse_loss(features, layers(content))
        loss.backward()
        numbers.append(loss.item())
        return loss

    optimizer.step(closure)
    return numbers


@program
def graph_convolutions(device, generator):
    links = (torch.rand(12, 12, generator=generator) > 0.7).float() + torch.eye(12)
    adjacent = (links / links.sum(1, keepdim=True)).to(device)
    features = torch.randn(12, 6, generator=generator).to(device)
    classes = torch.randint(3, (12,), generator=generator).to(device)
    first, second = nn.Linear(6, 8).to(device), nn.Linear(8, 3).to(device)
    optimizer = optim.Adam([*first.parameters(), *second.parameters()], lr=0.01, weight_decay=5e-4)
    train = torch.arange(6, device=device)
    numbers = []
    for _ in range(3):
        output = (adjacent @ second(F.relu(adjacent @ first(features)))).log_softmax(1)
        numbers.append(stepped(optimizer, F.nll_loss(output[train], classes[train])))
        numbers.append((output.argmax(1) == classes).float().mean().item())
    source, sink = links.nonzero().t().to(device)
    summed = torch.zeros(12, 6, device=device).index_add_(0, sink, features[source])
    at = sink[:, None].expand(-1, 6)
    most = torch.zeros(12, 6, device=device).scatter_reduce_(0, at, features[source], "amax")
    return [*numbers, summed.sum().item(), most.sum().item()]


@program
def mixture_of_experts(device, generator):
    experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4)).to(device)
    router = nn.Linear(8, 4, bias=False).to(device)
    optimizer = optim.AdamW([*experts.parameters(), *router.parameters()], lr=1e-2)
    numbers = []
    for _ in range(3):
        x = torch.randn(20, 8, generator=generator).to(device)
        weights, chosen = torch.topk(F.softmax(router(x), -1), 2)
        output = torch.zeros_like(x)
        for number, expert in enumerate(experts):
            rows, place = torch.where(chosen == number)
            if rows.numel():
                output.index_add_(0, rows, expert(x[rows]) * weights[rows, place, None])
        numbers.append(stepped(optimizer, (output - x).pow(2).mean()))
        numbers += torch.bincount(chosen.flatten(), minlength=4).tolist()
    return numbers


@program
def language_model_with_sampling(device, generator):
    table, head = nn.Embedding(20, 16), nn.Linear(16, 20, bias=False)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.ModuleList([table, layer, head]).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))

    def logits(words):
        mask = nn.Transformer.generate_square_subsequent_mask(words.size(1), device=device)
        return head(layer(table(words) * math.sqrt(16), src_mask=mask, is_causal=True))

    numbers = []
    for _ in range(3):
        words = torch.randint(20, (2, 9), generator=generator)
        words = words.pin_memory().to(device, non_blocking=True)
        loss = F.cross_entropy(logits(words[:, :-1]).view(-1, 20), words[:, 1:].reshape(-1))
        numbers.append(stepped(optimizer, loss))
    text = torch.zeros((1, 1), dtype=torch.long, device=device)
    for _ in range(4):
        found = logits(text)[:, -1, :] / 0.8
        best, _ = torch.topk(found, 5)
        found[found < best[:, [-1]]] = -float("inf")
        text = torch.cat((text, F.softmax(found, -1).argmax(-1, keepdim=True)), 1)
    return [*numbers, *text[0].tolist()]
