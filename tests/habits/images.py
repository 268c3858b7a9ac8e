"""Small versions of published programs on images: GANs, diffusion, fine-tuning."""

import copy
import math

from habits.common import batch, settle, waves


def habit_gan(torch):
    """A step of a GAN: labels filled in place, and a detached fake for the discriminator."""
    nn = torch.nn
    g = settle(torch, nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 4), nn.Tanh()))
    d = settle(
        torch,
        nn.Sequential(
            nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1), nn.Sigmoid()
        ),
    )
    criterion = nn.BCELoss()
    optimizer_d = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999))
    told = []
    for _ in range(2):
        d.zero_grad()
        real = waves(torch, 3, 4)
        label = torch.full((real.size(0),), 1.0, dtype=torch.float, device=real.device)
        err_real = criterion(d(real).view(-1), label)
        err_real.backward()
        fake = g(waves(torch, 3, 2))
        label.fill_(0.0)
        err_fake = criterion(d(fake.detach()).view(-1), label)
        err_fake.backward()
        optimizer_d.step()
        g.zero_grad()
        label.fill_(1.0)
        err_g = criterion(d(fake).view(-1), label)
        err_g.backward()
        optimizer_g.step()
        told += [(err_real + err_fake).item(), err_g.item()]
    return told


def habit_gradient_penalty(torch):
    """WGAN-GP: the gradient of the critic is part of the loss."""
    nn = torch.nn
    critic = settle(torch, nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    real, fake = waves(torch, 3, 4), waves(torch, 3, 4).flip(0)
    alpha = torch.linspace(0, 1, 3).unsqueeze(1).expand_as(real)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(mixed)
    gradients = torch.autograd.grad(
        outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score),
        create_graph=True, retain_graph=True, only_inputs=True,
    )[0]  # fmt: skip
    penalty = ((gradients.view(3, -1).norm(2, dim=1) - 1) ** 2).mean() * 10
    penalty.backward()
    return penalty.item(), critic[0].weight.grad.tolist()


def habit_fine_tuning(torch):
    """A frozen backbone, a new head, and the best state, which is kept and restored."""
    nn = torch.nn
    model = settle(
        torch, nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 9))
    )
    for name, param in model.named_parameters():
        param.requires_grad = "3" in name
    model[3] = settle(torch, nn.Linear(model[3].in_features, 3))
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.5)
    x, y = batch(torch)
    best, best_weights, history = 0.0, copy.deepcopy(model.state_dict()), []
    for _epoch in range(3):
        for phase in ["train", "val"]:
            model.train() if phase == "train" else model.eval()
            running_loss, running_corrects = 0.0, 0
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(x)
                _, preds = torch.max(outputs, 1)
                loss = nn.CrossEntropyLoss()(outputs, y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * x.size(0)
            running_corrects += torch.sum(preds == y.data)
            accuracy = running_corrects.double() / len(x)
            history.append((running_loss / len(x), accuracy.item()))
            if phase == "val" and accuracy > best:
                best, best_weights = accuracy, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_weights)
    return history


def habit_vision_training(torch):
    """timm: label smoothing, mixup, a warm-up, averaged weights, meters."""
    nn, F = torch.nn, torch.nn.functional
    model = settle(torch, nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.SiLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    ))  # fmt: skip
    no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1 or n.endswith(".bias")]
    decay = [p for p in model.parameters() if not any(p is q for q in no_decay)]
    optimizer = torch.optim.SGD(
        [{"params": decay}, {"params": no_decay, "weight_decay": 0}],
        lr=0.1,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-2,
    )
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[2])
    ema = copy.deepcopy(model)
    x, y = waves(torch, 6, 1, 5, 5), torch.arange(6) % 3
    losses = []
    for _ in range(3):
        lam = 0.7
        mixed = x.mul(lam).add_(x.flip(0).mul(1.0 - lam))
        hot = torch.full((6, 3), 0.1 / 3).scatter_(1, y.view(-1, 1), 0.9 + 0.1 / 3)
        target = hot * lam + hot.flip(0) * (1.0 - lam)
        loss = torch.sum(-target * F.log_softmax(model(mixed), dim=-1), dim=-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        for key, value in ema.state_dict().items():
            if value.dtype.is_floating_point:
                value.copy_(0.9 * value + (1.0 - 0.9) * model.state_dict()[key].detach())
        losses.append(loss.item())
    crop = F.interpolate(x, size=(8, 8), mode="bilinear", align_corners=False)[..., 1:-1, 1:-1]
    noisy = nn.CrossEntropyLoss(label_smoothing=0.1)(ema.eval()(torch.flip(crop, dims=[-1])), y)
    return losses, noisy.item(), [g["lr"] for g in optimizer.param_groups]


def habit_autoencoder(torch):
    """A VAE: two heads, the reparametrization trick, and an explicit divergence."""
    nn, F = torch.nn, torch.nn.functional
    encoder, mu_head, var_head = (
        settle(torch, nn.Linear(a, b)) for a, b in [(4, 6), (6, 2), (6, 2)]
    )
    decoder = settle(torch, nn.Sequential(nn.Linear(2, 4), nn.Sigmoid()))
    x = waves(torch, 5, 4).sigmoid()
    h = F.relu(encoder(x.view(-1, 4)))
    mu, logvar = mu_head(h), var_head(h)
    std = torch.exp(0.5 * logvar)
    eps = torch.randn_like(std)
    z = mu + eps * std * 0
    bce = F.binary_cross_entropy(decoder(z), x.view(-1, 4), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    (bce + kld).backward()
    return bce.item(), kld.item(), encoder.weight.grad.sum().item()


def habit_diffusion(torch):
    """DDPM: a noise schedule, values at given times, sinusoidal embeddings, and a loss."""
    betas = torch.linspace(1e-4, 0.02, 10)
    alphas_bar = torch.cumprod(1.0 - betas, dim=0)
    previous = torch.nn.functional.pad(alphas_bar[:-1], (1, 0), value=1.0)
    t = torch.tensor([0, 4, 9], dtype=torch.long)
    x, noise = waves(torch, 3, 2, 4), waves(torch, 3, 2, 4).flip(-1)

    def extract(a, t, shape):
        return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))

    noisy = (
        extract(alphas_bar.sqrt(), t, x.shape) * x
        + extract((1 - alphas_bar).sqrt(), t, x.shape) * noise
    )
    freqs = torch.exp(-math.log(10000) * torch.arange(0, 4, dtype=torch.float32) / 4)
    args = t[:, None].float() * freqs[None]
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    return (
        noisy.tolist(),
        embedding.tolist(),
        previous.tolist(),
        torch.nn.functional.mse_loss(noisy, noise).item(),
    )


def habit_matching_texts_and_images(torch):
    """CLIP: normalized embeddings, a learned temperature, and consecutive labels."""
    F = torch.nn.functional
    logit_scale = torch.nn.Parameter(torch.ones([]) * math.log(1 / 0.07))
    images = F.normalize(waves(torch, 3, 4), dim=-1)
    texts = waves(torch, 3, 4).roll(1, dims=0)
    texts = texts / texts.norm(dim=-1, keepdim=True)
    logits = logit_scale.exp() * images @ texts.t()
    labels = torch.arange(len(logits), device=logits.device)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
    loss.backward()
    with torch.no_grad():
        logit_scale.clamp_(0, math.log(100))
    return loss.item(), logit_scale.grad.item()


def habit_styles(torch):
    """Style transfer: an image is optimized to match the Gram matrix of a network's features."""
    nn = torch.nn
    conv = settle(torch, nn.Conv2d(1, 3, 3, padding=1)).requires_grad_(False).eval()

    def gram(x):
        a, b, c, d = x.size()
        features = x.view(a * b, c * d)
        return torch.mm(features, features.t()).div(a * b * c * d)

    target = gram(conv(waves(torch, 1, 1, 4, 4))).detach()
    image = torch.zeros(1, 1, 4, 4).requires_grad_(True)
    optimizer = torch.optim.Adam([image], lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(gram(conv(image)), target) * 1e3
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            image.clamp_(0, 1)
        losses.append(loss.item())
    return losses
