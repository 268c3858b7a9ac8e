"""A diffusion model with a U-Net of attention blocks."""

import math
from functools import partial
from inspect import isfunction

import numpy as np
import torch
import torch.nn.functional as F
from published import report, weights
from torch import einsum, nn


def exists(x):
    return x is not None


def default(val, d):
    if exists(val):
        return val
    return d() if isfunction(d) else d


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, *args, **kwargs):
        return self.fn(x, *args, **kwargs) + x


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        device = time.device
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class WeightStandardizedConv2d(nn.Conv2d):
    def forward(self, x):
        eps = 1e-5 if x.dtype == torch.float32 else 1e-3
        weight = self.weight
        mean = weight.mean(dim=(1, 2, 3), keepdim=True)
        var = weight.var(dim=(1, 2, 3), keepdim=True, unbiased=False)
        normalized_weight = (weight - mean) * (var + eps).rsqrt()
        return F.conv2d(
            x, normalized_weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )


class Block(nn.Module):
    def __init__(self, dim, dim_out, groups=4):
        super().__init__()
        self.proj = WeightStandardizedConv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()

    def forward(self, x, scale_shift=None):
        x = self.norm(self.proj(x))
        if exists(scale_shift):
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)


class ResnetBlock(nn.Module):
    def __init__(self, dim, dim_out, *, time_emb_dim=None, groups=4):
        super().__init__()
        self.mlp = (
            nn.Sequential(nn.SiLU(), nn.Linear(time_emb_dim, dim_out * 2))
            if exists(time_emb_dim)
            else None
        )
        self.block1 = Block(dim, dim_out, groups=groups)
        self.block2 = Block(dim_out, dim_out, groups=groups)
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, time_emb=None):
        scale_shift = None
        if exists(self.mlp) and exists(time_emb):
            time_emb = self.mlp(time_emb)
            time_emb = time_emb[(...,) + (None, None)]
            scale_shift = time_emb.chunk(2, dim=1)
        h = self.block1(x, scale_shift=scale_shift)
        h = self.block2(h)
        return h + self.res_conv(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=4):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        hidden = dim_head * heads
        self.to_qkv = nn.Conv2d(dim, hidden * 3, 1, bias=False)
        self.to_out = nn.Conv2d(hidden, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.to_qkv(x).chunk(3, dim=1)
        q, k, v = map(lambda t: t.reshape(b, self.heads, -1, h * w), qkv)
        q = q * self.scale
        sim = einsum("b h d i, b h d j -> b h i j", q, k)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        attn = sim.softmax(dim=-1)
        out = einsum("b h i j, b h d j -> b h i d", attn, v)
        out = out.permute(0, 1, 3, 2).reshape(b, -1, h, w)
        return self.to_out(out)


class Unet(nn.Module):
    def __init__(self, dim=8, dim_mults=(1, 2), channels=1):
        super().__init__()
        self.init_conv = nn.Conv2d(channels, dim, 7, padding=3)
        dims = [dim, *map(lambda m: dim * m, dim_mults)]
        in_out = list(zip(dims[:-1], dims[1:], strict=False))
        block = partial(ResnetBlock, groups=4)
        t = dim * 4
        self.time_mlp = nn.Sequential(
            SinusoidalPosEmb(dim), nn.Linear(dim, t), nn.GELU(), nn.Linear(t, t)
        )
        self.downs = nn.ModuleList([])
        self.ups = nn.ModuleList([])
        for ind, (a, b) in enumerate(in_out):
            last = ind >= len(in_out) - 1
            self.downs.append(
                nn.ModuleList(
                    [
                        block(a, a, time_emb_dim=t),
                        Residual(Attention(a)),
                        nn.Conv2d(a, b, 4, 2, 1) if not last else nn.Conv2d(a, b, 3, padding=1),
                    ]
                )
            )
        mid = dims[-1]
        self.mid = block(mid, mid, time_emb_dim=t)
        for ind, (a, b) in enumerate(reversed(in_out)):
            last = ind == len(in_out) - 1
            self.ups.append(
                nn.ModuleList(
                    [
                        block(b + a, b, time_emb_dim=t),
                        nn.Sequential(
                            nn.Upsample(scale_factor=2, mode="nearest"),
                            nn.Conv2d(b, a, 3, padding=1),
                        )
                        if not last
                        else nn.Conv2d(b, a, 3, padding=1),
                    ]
                )
            )
        self.final = nn.Conv2d(dim, channels, 1)

    def forward(self, x, time):
        x = self.init_conv(x)
        t = self.time_mlp(time)
        h = []
        for b1, attn, down in self.downs:
            x = b1(x, t)
            x = attn(x)
            h.append(x)
            x = down(x)
        x = self.mid(x, t)
        for b1, up in self.ups:
            x = torch.cat((x, h.pop()), dim=1)
            x = b1(x, t)
            x = up(x)
        return self.final(x)


def cosine_beta_schedule(timesteps, s=0.008):
    steps = timesteps + 1
    x = torch.linspace(0, timesteps, steps, dtype=torch.float64)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * torch.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0.0001, 0.9999)


T_ = 20
betas = cosine_beta_schedule(T_).float()
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, axis=0)
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
sa = torch.sqrt(alphas_cumprod)
soa = torch.sqrt(1.0 - alphas_cumprod)
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)


def extract(a, t, x_shape):
    batch_size = t.shape[0]
    out = a.gather(-1, t.to(a.device))
    return out.reshape(batch_size, *((1,) * (len(x_shape) - 1))).to(t.device)


r = np.random.RandomState(0)
model = weights(Unet())
ema = {k: v.clone() for k, v in model.state_dict().items()}
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _step in range(3):
    opt.zero_grad()
    x = torch.from_numpy(r.rand(4, 1, 8, 8).astype("float32")) * 2 - 1
    t = torch.from_numpy(r.randint(0, T_, (4,))).long()
    noise = torch.from_numpy(r.randn(4, 1, 8, 8).astype("float32"))
    xn = extract(sa, t, x.shape) * x + extract(soa, t, x.shape) * noise
    loss = F.smooth_l1_loss(noise, model(xn, t))
    loss.backward()
    opt.step()
    report(loss.item())
    with torch.no_grad():
        for k, v in model.state_dict().items():
            ema[k].mul_(0.9).add_(v, alpha=0.1)


@torch.no_grad()
def p_sample(model, x, t, t_index):
    mean = extract(sqrt_recip_alphas, t, x.shape) * (
        x - extract(betas, t, x.shape) * model(x, t) / extract(soa, t, x.shape)
    )
    if t_index == 0:
        return mean
    noise = torch.randn_like(x) * 0
    return mean + torch.sqrt(extract(posterior_variance, t, x.shape)) * noise


img = torch.from_numpy(r.randn(2, 1, 8, 8).astype("float32"))
imgs = []
for i in reversed(range(0, T_)):
    img = p_sample(model, img, torch.full((2,), i, device=img.device, dtype=torch.long), i)
    imgs.append(img.cpu().numpy())
report(*[float(x.mean()) for x in imgs], img.clamp_(-1, 1))
report(ema)
