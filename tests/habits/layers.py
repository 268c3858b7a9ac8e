"""Everyday use of layers, their arguments and their parameters."""

from habits.common import settle, waves


def habit_initial_weights(torch):
    nn = torch.nn

    def init_weights(m):
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.constant_(m.weight, 1)
            m.bias.data.zero_()
        classname = m.__class__.__name__
        if classname.find("Embedding") != -1:
            m.weight.data.normal_(0.0, 0.02)

    model = nn.Sequential(
        nn.Embedding(3, 4), nn.Linear(4, 4), nn.BatchNorm2d(4), nn.Linear(4, 2, bias=False)
    )
    assert model.apply(init_weights) is model and model[1].bias.abs().sum() == 0
    nn.init.normal_(model[1].weight, mean=0.0, std=0.02)
    nn.init.kaiming_normal_(model[3].weight, mode="fan_out", nonlinearity="relu")
    nn.init.trunc_normal_(model[1].weight, std=0.02)
    nn.init.orthogonal_(model[3].weight, gain=nn.init.calculate_gain("relu"))
    bound = 1 / model[3].in_features ** 0.5
    nn.init.uniform_(model[3].weight, -bound, bound)
    assert model[3].weight.abs().max() <= bound


def habit_values_of_parameters(torch):
    layer, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    layer.weight.data.copy_(torch.eye(2))
    layer.bias.data = torch.tensor([1.0, 2.0])
    layer.weight.data[0, 1] = 3.0
    other.load_state_dict(layer.state_dict())
    other.weight = layer.weight
    assert other(torch.ones(1, 2)).tolist() == [[5, 3]] and other.weight is layer.weight
    assert layer.weight.requires_grad and layer.bias.is_leaf
    layer.bias = torch.nn.Parameter(torch.zeros(2))
    assert dict(layer.named_parameters())["bias"].sum() == 0
    layer.weight.data *= 2
    assert layer.weight[1, 1] == 2


def habit_parameters_of_ones_own(torch):
    nn = torch.nn

    class Scale(nn.Module):
        def __init__(self, width, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))
            self.bias = None
            self.register_parameter("shift", None)
            self.register_buffer("mask", torch.tril(torch.ones(width, width)).view(1, width, width))
            self.eps = eps

        def forward(self, x):
            x = x @ self.mask[0, : x.size(-1), : x.size(-1)]
            return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

        def extra_repr(self):
            return f"{self.weight.shape[0]}, eps={self.eps}"

    layer = Scale(3)
    assert str(layer) == "Scale(3, eps=1e-06)" and layer.shift is None
    assert list(layer.state_dict()) == ["weight", "mask"]
    assert not layer.mask.requires_grad and hasattr(layer, "mask") and not hasattr(layer, "nothing")
    assert isinstance(layer.weight, nn.Parameter) and isinstance(layer.weight, torch.Tensor)
    return layer(waves(torch, 2, 3)).tolist()


def habit_arguments_of_losses(torch):
    nn = torch.nn
    weight = torch.tensor([1.0, 2.0, 3.0])
    logits, labels = waves(torch, 3, 3), torch.tensor([0, -100, 2], dtype=torch.long)
    losses = [
        nn.CrossEntropyLoss(weight),
        nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1),
        nn.CrossEntropyLoss(weight=weight, reduction="sum"),
        nn.NLLLoss(weight),
    ]
    assert losses[0].weight is weight and losses[1].ignore_index == -100
    return [loss(logits, labels).item() for loss in losses]


def habit_arguments_of_functions(torch):
    F = torch.nn.functional
    x = waves(torch, 2, 3)
    given = [
        F.relu(x.clone(), inplace=True), F.leaky_relu(x, 0.2), F.gelu(x, approximate="tanh"),
        F.softmax(x, dim=-1), F.log_softmax(x, dim=1), F.dropout(x, p=0.5, training=False),
        F.normalize(x, dim=-1, p=2), F.pad(x, (1, 1), value=0.5), F.layer_norm(x, (3,)),
        F.mse_loss(x, x * 2, reduction="none"), F.smooth_l1_loss(x, x * 3), F.silu(x), F.elu(x),
        F.cosine_similarity(x, x + 1, dim=1), F.linear(x, x), F.softplus(x), F.logsigmoid(x),
        F.interpolate(x[None, None], scale_factor=2, mode="nearest"), F.hardtanh(x, -0.5, 0.5),
        F.kl_div(F.log_softmax(x, 1), F.softmax(x + 1, 1), reduction="batchmean"),
        F.binary_cross_entropy_with_logits(x, (x > 0).float(), pos_weight=torch.tensor(2.0)),
        F.avg_pool2d(x[None], 2), F.max_pool2d(x[None], kernel_size=2, stride=1),
        F.conv1d(x[None], torch.ones(1, 2, 2), padding=1), F.l1_loss(x, -x),
        F.unfold(x[None, None], kernel_size=2), F.glu(waves(torch, 2, 4)), F.huber_loss(x, -x),
    ]  # fmt: skip
    return [one.tolist() for one in given]


def habit_layers_by_position(torch):
    nn = torch.nn
    x = waves(torch, 1, 2, 6, 6)
    layers = [
        nn.Conv2d(2, 4, 3, 2, 1, bias=False), nn.Conv2d(2, 2, kernel_size=3, groups=2, dilation=2),
        nn.ConvTranspose2d(2, 3, 4, 2, 1), nn.BatchNorm2d(2, eps=1e-3, momentum=0.01),
        nn.GroupNorm(1, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.AdaptiveAvgPool2d(1), nn.Flatten(1),
        nn.MaxPool2d(2, 2), nn.AvgPool2d(3, stride=1, padding=1), nn.Upsample(scale_factor=2),
        nn.LeakyReLU(0.2, inplace=False), nn.ZeroPad2d(1), nn.PixelUnshuffle(2), nn.Softmax(dim=1),
        nn.InstanceNorm2d(2, affine=True), nn.ReflectionPad2d(1), nn.LayerNorm([6, 6]),
    ]  # fmt: skip
    return [settle(torch, layer)(x).tolist() for layer in layers]


def habit_recurrent_layers(torch):
    nn = torch.nn
    x = waves(torch, 2, 3, 4)
    lstm = settle(torch, nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True))
    out, (h, c) = lstm(x)
    assert out.shape == (2, 3, 10) and h.shape == c.shape == (4, 2, 5)
    gru = settle(torch, nn.GRU(4, 5, batch_first=True))
    hidden = torch.zeros(1, 2, 5)
    out2, hidden = gru(x, hidden)
    packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True, enforce_sorted=False)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)
    assert lengths.tolist() == [3, 2] and padded.shape == (2, 3, 5)
    assert [name for name, _ in gru.named_parameters()][0] == "weight_ih_l0"
    cell = settle(torch, nn.LSTMCell(4, 5))
    return out.tolist(), out2.tolist(), cell(x[:, 0])[0].tolist()


def habit_attention(torch):
    nn = torch.nn
    x = waves(torch, 2, 3, 8)
    attention = settle(torch, nn.MultiheadAttention(8, 2, batch_first=True))
    out, weights = attention(x, x, x)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    layer = settle(torch, nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))
    encoder = nn.TransformerEncoder(layer, num_layers=2)
    fused = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    return out.tolist(), weights.tolist(), encoder(x, mask=mask).tolist(), fused.tolist()


def habit_embeddings(torch):
    nn = torch.nn
    table = settle(torch, nn.Embedding(5, 3, padding_idx=0))
    tokens = torch.tensor([[1, 2, 0]], dtype=torch.long)
    loaded = nn.Embedding.from_pretrained(waves(torch, 5, 3), freeze=True)
    assert not loaded.weight.requires_grad and loaded(tokens).shape == (1, 3, 3)
    table(tokens).sum().backward()
    assert table.weight.grad[0].abs().sum() == 0 and table.weight.grad[1].sum() == 3
    assert table.num_embeddings == 5 and table.embedding_dim == 3
    bags = nn.EmbeddingBag.from_pretrained(waves(torch, 5, 3), mode="mean")
    return bags(tokens).tolist()
