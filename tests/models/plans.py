"""Short trainings of the example models, with each plan on four workers.

Each returns numbers that must not depend on the plan, and weights whose placement is checked.
"""

import json

import gt
import numpy as np
from twins import EXAMPLES, diffusion, lstm, policy_gradient, resnet, vae, vit


def train_resnet():
    images, labels, test_images, test_labels = resnet.load()
    with gt.signal.context("copied"):
        model = resnet.resnet18(num_classes=10, width=4)
    optimizer = gt.optim.SGD(model.parameters(), lr=1e-3)
    schedule = gt.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    loss = resnet.train(model, optimizer, schedule, images[:48], labels[:48], 16)
    accuracy = resnet.evaluate(model, test_images[:64], test_labels[:64])
    return [loss, accuracy], [model.conv1.weight]


def train_vit():
    images, labels, test_images, test_labels = vit.load()
    sizes = dict(num_layers=1, num_heads=4, hidden_dim=16, mlp_dim=32, num_classes=10)
    with gt.signal.context("copied"):
        model = vit.VisionTransformer(image_size=8, patch_size=2, **sizes)
    optimizer = gt.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = gt.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    loss = vit.train(model, optimizer, schedule, images[:80], labels[:80], 16)
    accuracy = vit.evaluate(model, test_images[:64], test_labels[:64])
    attention, mlp = model.encoder.layers[0].self_attention, model.encoder.layers[0].mlp
    weights = [model.conv_proj.weight, attention.in_proj_weight, attention.out_proj.weight]
    return [loss, accuracy], [*weights, mlp[0].weight, mlp[3].weight]


def train_lstm():
    text = lstm.Text("The quick brown fox jumps over the lazy dog. " * 20)
    with gt.signal.context("copied"):
        model = lstm.LanguageModel(len(text.characters), hidden=16)
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-2)
    losses = lstm.train(model, optimizer, text.data, 6, batch_size=8, length=16)
    bits = lstm.evaluate(model, text.data, length=16)
    return [*losses, bits], [model.lstm.weight_hh_l0, model.decoder.weight]


def train_vae():
    images, test_images = vae.load()
    with gt.signal.context("copied"):
        model = vae.VariationalAutoencoder(hidden=32)
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
    parts = vae.train(model, optimizer, images[:160], 32)
    bound, drawn = vae.evaluate(model, test_images), model.sample(2)
    weights = [model.encoder[0].weight, model.decoder[2].weight]
    return [*parts, bound, *drawn[0].tolist()], weights


def train_diffusion():
    images = np.random.rand(64, 1, 8, 8).astype("float32")
    schedule = diffusion.Schedule(3)
    with gt.signal.context("copied"):
        model = diffusion.UNet(8)
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
    losses = diffusion.train(model, schedule, optimizer, images, 4, batch_size=16)
    drawn = diffusion.sample(model, schedule, 2)
    weights = [model.first.weight, model.time[0].weight, model.time[2].weight]
    return [*losses, *drawn[0].flatten().tolist()], weights


def train_policy_gradient():
    with gt.signal.context("copied"):
        model = policy_gradient.Policy(8)
    optimizer = gt.optim.Adam(model.parameters(), lr=0.02)
    rng = np.random.default_rng(0)
    lengths = policy_gradient.train(model, optimizer, rng, 4, carts=8, times=30)
    weights = [model.hidden.weight, model.output.weight]
    return [*lengths, *model.output.weight[0].tolist()], weights


#: The axis of each weight that is sharded in tensor parallel plans, or None.
CUT = {
    "resnet": [None],
    "vit": [None, 0, 1, 0, 1],
    "lstm": [None, 0],
    "vae": [0, 1],
    "diffusion": [None, 0, 1],
    "policy_gradient": [0, 1],
}
PLANS = ["one worker", "data_parallel", "tensor_parallel", "hybrid"]


def run(name, plan):
    """Train with a plan; return the numbers, and the placement of the weights."""
    gt.get_config().clear()
    if plan != "one worker":
        gt.load_config(EXAMPLES / f"{plan}.yaml")
    gt.manual_seed(0)
    np.random.seed(0)
    numbers, weights = globals()[f"train_{name}"]()
    return numbers, [gt.debug.placement(weight)[0].placement for weight in weights]


def report():
    """Print the results of all trainings, as JSON."""
    print(json.dumps({name: {plan: run(name, plan) for plan in PLANS} for name in CUT}))
