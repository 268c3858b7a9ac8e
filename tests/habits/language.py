"""Small versions of published programs with language models."""

import inspect
import math

from habits.common import batch, classifier, settle, waves


def habit_bigrams(torch):
    """makemore: counts of pairs of characters, smoothed, and the likelihood of words."""
    words = ["emma", "olivia", "ava"]
    stoi = {s: i + 1 for i, s in enumerate(sorted(set("".join(words))))}
    stoi["."] = 0
    N = torch.zeros((len(stoi), len(stoi)), dtype=torch.int32)
    for w in words:
        for one, other in zip("." + w, w + ".", strict=True):
            N[stoi[one], stoi[other]] += 1
    P = (N + 1).float()
    P /= P.sum(1, keepdim=True)
    total = 0.0
    for w in words:
        for one, other in zip("." + w, w + ".", strict=True):
            total += torch.log(P[stoi[one], stoi[other]])
    ix = torch.multinomial(P[0], num_samples=1, replacement=True).item()
    assert 0 <= ix < len(stoi) and N[0].sum().item() == 3
    return N.tolist(), total.item()


def habit_words_by_hand(torch):
    """makemore: an embedding, batch normalization and cross entropy without modules."""
    F = torch.nn.functional
    C, W1, W2 = waves(torch, 5, 2), waves(torch, 6, 8) * (5 / 3) / 6**0.5, waves(torch, 8, 5)
    b2, bngain, bnbias = torch.zeros(5), torch.ones((1, 8)), torch.zeros((1, 8))
    running = torch.zeros((1, 8))
    parameters = [C, W1, W2, b2, bngain, bnbias]
    for p in parameters:
        p.requires_grad = True
    X, Y = torch.arange(12).view(4, 3) % 5, torch.arange(4)
    lossi, ud = [], []
    for i in range(3):
        embcat = C[X].view(X.shape[0], -1)
        hpreact = embcat @ W1
        mean, std = hpreact.mean(0, keepdim=True), hpreact.std(0, keepdim=True)
        h = torch.tanh(bngain * (hpreact - mean) / std + bnbias)
        with torch.no_grad():
            running = 0.999 * running + 0.001 * mean
        loss = F.cross_entropy(h @ W2 + b2, Y)
        for p in parameters:
            p.grad = None
        loss.backward()
        lr = 0.1 if i < 2 else 0.01
        for p in parameters:
            p.data += -lr * p.grad
        lossi.append(loss.log10().item())
        with torch.no_grad():
            ud.append([(lr * p.grad.std() / p.data.std()).log10().item() for p in parameters[:3]])
    return lossi, ud, torch.tensor(lossi).mean().item()


def _gpt(torch):
    nn, F = torch.nn, torch.nn.functional

    class CausalSelfAttention(nn.Module):
        def __init__(self, width, heads, block):
            super().__init__()
            assert width % heads == 0
            self.c_attn = nn.Linear(width, 3 * width)
            self.c_proj = nn.Linear(width, width)
            self.n_head, self.n_embd = heads, width
            self.flash = hasattr(F, "scaled_dot_product_attention")
            self.register_buffer(
                "bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block)
            )

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
            k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            fused = F.scaled_dot_product_attention(
                q, k, v, attn_mask=None, dropout_p=0, is_causal=True
            )
            assert self.flash and torch.allclose(y, fused, atol=1e-5)
            return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class GPT(nn.Module):
        def __init__(self, vocabulary=7, width=8, block=6):
            super().__init__()
            self.transformer = nn.ModuleDict(
                dict(
                    wte=nn.Embedding(vocabulary, width),
                    wpe=nn.Embedding(block, width),
                    drop=nn.Dropout(0.0),
                    h=nn.ModuleList([CausalSelfAttention(width, 2, block) for _ in range(2)]),
                    ln_f=nn.LayerNorm(width),
                )
            )
            self.lm_head = nn.Linear(width, vocabulary, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)
            for pn, p in self.named_parameters():
                if pn.endswith("c_proj.weight"):
                    nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(4))

        def _init_weights(self, module):
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

        def forward(self, idx, targets=None):
            pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
            x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
            for block in self.transformer.h:
                x = x + block(x)
            x = self.transformer.ln_f(x)
            if targets is None:
                return self.lm_head(x[:, [-1], :]), None
            logits = self.lm_head(x)
            return logits, F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1
            )

        @torch.no_grad()
        def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
            for _ in range(max_new_tokens):
                logits, _ = self(idx[:, -6:])
                logits = logits[:, -1, :] / temperature
                if top_k is not None:
                    v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                    logits[logits < v[:, [-1]]] = -float("Inf")
                probs = F.softmax(logits, dim=-1)
                idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
            return idx

    return settle(torch, GPT())


def habit_nanogpt(torch):
    """nanoGPT: parameter groups, accumulated gradients, a manual schedule, sampling."""
    model = _gpt(torch)
    params = {pn: p for pn, p in model.named_parameters() if p.requires_grad}
    groups = [
        {"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    fused_available = "fused" in inspect.signature(torch.optim.AdamW).parameters
    assert fused_available
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95))
    tokens = torch.arange(14).view(2, 7) % 7
    losses = []
    for it in range(2):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (it + 1)
        for _micro in range(2):
            logits, loss = model(tokens[:, :-1], tokens[:, 1:])
            (loss / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    model.eval()
    assert model.generate(tokens[:1, :3], 4, temperature=0.8, top_k=1).shape == (1, 7)
    return losses, model.generate(tokens[:1, :3], 4, top_k=1).tolist(), list(params)


def habit_low_rank(torch):
    """LoRA: a frozen layer and two small factors, which are merged at the end."""
    nn = torch.nn

    class LoRALinear(nn.Module):
        def __init__(self, base, r=2, alpha=4):
            super().__init__()
            self.base, self.scaling = base, alpha / r
            self.lora_A = nn.Parameter(base.weight.new_zeros(r, base.in_features))
            self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
            nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
            for p in self.base.parameters():
                p.requires_grad = False

        def forward(self, x):
            return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling

        def merge(self):
            self.base.weight.data += self.lora_B.data @ self.lora_A.data * self.scaling
            return self.base

    model = classifier(torch)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], LoRALinear(module))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "lora_" in n:
                p.copy_(waves(torch, *p.shape))
    x, y = batch(torch)
    before = model(x)
    torch.nn.functional.cross_entropy(before, y).backward()
    trained = [n for n, p in model.named_parameters() if p.requires_grad]
    assert model[0].base.weight.grad is None and model[0].lora_A.grad is not None
    merged = nn.Sequential(model[0].merge(), model[1], model[2].merge())
    assert torch.allclose(merged(x), before, atol=1e-5)
    return trained, model[2].lora_B.grad.tolist()


def habit_rotary_positions(torch):
    """LLaMA: rotary embeddings by complex numbers, repeated heads, SwiGLU, a cache."""
    x = waves(torch, 1, 3, 2, 4)
    freqs = 1.0 / (10000.0 ** (torch.arange(0, 4, 2)[:2].float() / 4))
    freqs_cis = torch.polar(torch.ones(3, 2), torch.outer(torch.arange(3).float(), freqs))
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    rotated = torch.view_as_real(pairs * freqs_cis.view(1, 3, 1, 2)).flatten(3).type_as(x)
    repeated = x[:, :, :, None, :].expand(1, 3, 2, 2, 4).reshape(1, 3, 4, 4)
    assert repeated.equal(torch.repeat_interleave(x, dim=2, repeats=2))
    gated = torch.nn.functional.silu(x) * x
    scores = torch.full((3, 3), float("-inf")).triu(1)
    cache = torch.zeros(1, 6, 2, 4)
    cache[:1, 2:5] = x
    return rotated.tolist(), gated.tolist(), scores[0, 0].item(), cache[:, :5].sum().item()


def habit_sequences_of_characters(torch):
    """A character LSTM: hidden states are detached between chunks."""
    nn = torch.nn
    embed, lstm, head = nn.Embedding(5, 4), nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 5)
    model = settle(torch, nn.ModuleList([embed, lstm, head]))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    hidden, losses = None, []
    for chunk in torch.arange(16).view(1, 16).remainder(5).split(8, dim=1):
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        out, hidden = lstm(embed(chunk[:, :-1]), hidden)
        loss = nn.functional.cross_entropy(head(out).transpose(1, 2), chunk[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
