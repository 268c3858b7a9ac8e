"""Habits of early programs: Variable, legacy tensor types, and transforms of torchvision."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
import torch.nn.functional as F
from published import folder, report, weights
from torch.autograd import Variable
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.transforms import v2

r = np.random.RandomState(0)
cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if cuda else torch.LongTensor
valid = Variable(Tensor(4, 1).fill_(1.0), requires_grad=False)
z = Variable(Tensor(r.normal(0, 1, (4, 8))))
gl = Variable(LongTensor(r.randint(0, 3, 4)))
report(valid, z, gl)
G = weights(
    nn.Sequential(
        nn.Linear(8, 16),
        nn.BatchNorm1d(16, 0.8),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Linear(16, 16),
        nn.Tanh(),
    ),
    "G",
)
D = weights(nn.Sequential(nn.Linear(16, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1)), "D")
alpha = Tensor(r.random_sample((4, 1)))
real = Variable(torch.from_numpy(r.rand(4, 16)).type(Tensor))
fake = G(z)
inter = (alpha * real + ((1 - alpha) * fake)).requires_grad_(True)
di = D(inter)
f = Variable(Tensor(real.shape[0], 1).fill_(1.0), requires_grad=False)
g = autograd.grad(
    outputs=di, inputs=inter, grad_outputs=f, create_graph=True, retain_graph=True, only_inputs=True
)[0]
g = g.view(g.size(0), -1)
gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
opt = torch.optim.RMSprop(D.parameters(), lr=5e-5)
(-torch.mean(D(real)) + torch.mean(D(fake.detach())) + 10 * gp).backward()
opt.step()
for p in D.parameters():
    p.data.clamp_(-0.01, 0.01)
report(gp, D.state_dict())
criterion = nn.MSELoss(reduction="sum")
cr2 = F.cross_entropy(torch.from_numpy(r.randn(4, 3)).float(), gl, size_average=False)
report(cr2)
x = Variable(torch.ones(2, 2), requires_grad=True)
y = x + 2
zz = y * y * 3
out = zz.mean()
out.backward()
report(x.grad.data, out.data)
report(
    torch.Tensor(2, 3).zero_(),
    torch.Tensor([1, 2]).long(),
    torch.IntTensor([1, 2]) * 2,
    torch.ByteTensor([1, 0]).bool(),
    torch.zeros(2, 2).byte().any(),
    torch.eye(3)[torch.LongTensor([0, 2])],
)


def reset_grad(*nets):
    for n in nets:
        n.zero_grad()


reset_grad(G, D)
report(
    torch.cat([p.view(-1) for p in G.parameters()]).size(0),
    nn.utils.parameters_to_vector(G.parameters()).norm(),
)
t = transforms.Compose(
    [
        transforms.ToPILImage(),
        transforms.Resize(8),
        transforms.CenterCrop(6),
        transforms.RandomHorizontalFlip(0.0),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.5] * 3),
    ]
)


class DS(torch.utils.data.Dataset):
    def __init__(self):
        self.x = (r.rand(8, 10, 10, 3) * 255).astype("uint8")
        self.transform = t

    def __getitem__(self, i):
        return self.transform(self.x[i]), i % 3

    def __len__(self):
        return 8


for w in (0,):
    for a, b in DataLoader(DS(), batch_size=4, num_workers=w, pin_memory=True, drop_last=True):
        report(a, b)
fd = datasets.FakeData(8, (3, 8, 8), 3, transforms.ToTensor())
a, b = next(iter(DataLoader(fd, batch_size=4)))
report(tuple(a.shape), b)

tv = v2.Compose(
    [
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True) if False else v2.Identity(),
        v2.Normalize([0.5] * 3, [0.5] * 3) if False else v2.Identity(),
    ]
)
a = next(iter(DataLoader([tv(DS().x[0]) for _ in range(2)], batch_size=2)))
report(tuple(a.shape), a.float().mean())


def my_collate(batch):
    data = [item[0] for item in batch]
    target = torch.LongTensor([item[1] for item in batch])
    return [torch.stack(data, 0), target]


a, b = next(iter(DataLoader(DS(), batch_size=4, collate_fn=my_collate)))
report(a, b)
model = nn.DataParallel(
    nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
)
weights(model, "dp")
report(model(a), list(model.state_dict())[0])


def adjust_learning_rate(optimizer, epoch, lr=0.1):
    lr = lr * (0.1 ** (epoch // 30))
    for pg in optimizer.param_groups:
        pg["lr"] = lr


opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
adjust_learning_rate(opt, 31)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        bs = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            ck = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(ck.mul_(100.0 / bs))
        return res


report(accuracy(model(a), b, (1, 2)))
total = torch.tensor([3.0, 4], dtype=torch.float32, device="cpu")
report(total.tolist())
for _n, m in model.named_modules():
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(m.bias, 0) if m.bias is not None else None
torch.save(
    {
        "epoch": 1,
        "arch": "r",
        "state_dict": model.state_dict(),
        "best_acc1": accuracy(model(a), b)[0] * 0,
        "optimizer": opt.state_dict(),
        "scheduler": torch.optim.lr_scheduler.StepLR(opt, 30).state_dict(),
    },
    folder.path / "c.pth.tar",
)
ck = torch.load(folder.path / "c.pth.tar", map_location="cpu")
ck = torch.load(folder.path / "c.pth.tar", map_location=lambda storage, loc: storage)
model.load_state_dict({k.replace("module.", "module."): v for k, v in ck["state_dict"].items()})
opt.load_state_dict(ck["optimizer"])
s = torch.sum(torch.stack([torch.ones(2) * i for i in range(3)]), 0)
report(
    s,
    torch.max(s),
    s.max(0)[1].item(),
    (s > 2).nonzero().squeeze().item() if False else 0,
    s.size(),
    s.new(2).fill_(1),
    s.new_full((2,), 3.0),
    s.new_ones(2),
    s.new_tensor([1.0]),
)
rep = torch.rand(3, 3)
rep.mul_(0).add_(1)
rep[1] = 5
rep[:, 0] += 1
report(
    rep,
    rep.numpy(),
    np.array(rep),
    rep.t().contiguous().view(-1),
    torch.split(rep, 2),
    rep.chunk(3, 1)[0].squeeze_(),
    torch.mean(rep, dim=(0, 1)),
    rep.gather(1, torch.LongTensor([[0], [1], [2]])),
    rep.sort(descending=True)[0],
)
with torch.cuda.device(0) if torch.cuda.is_available() else torch.no_grad():
    report(torch.norm(rep, p=2, dim=1))
report(
    F.softmax(rep),
    F.log_softmax(rep, 1),
    F.tanh(rep),
    F.sigmoid(rep),
    torch.addmm(rep, rep, rep),
    torch.clamp(rep, min=2),
    F.upsample(rep[None, None], scale_factor=2),
    nn.Softmax()(rep),
    nn.Upsample(scale_factor=2)(rep[None, None]),
    torch.ger(rep[0], rep[1]),
    torch.range(0, 3) if False else 0,
)
