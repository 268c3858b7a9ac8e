"""Everyday use of data: datasets, loaders, samplers, distributions."""

import random
from importlib import import_module

import numpy as np

from habits.common import waves


def _data(torch):
    return import_module(f"{torch.__name__}.utils.data")


def habit_loaders(torch):
    data = _data(torch)
    dataset = data.TensorDataset(waves(torch, 10, 4), torch.arange(10))
    loader = data.DataLoader(dataset, batch_size=4, shuffle=True, num_workers=0, drop_last=True)
    assert len(dataset) == 10 and len(loader) == 2 and len(loader.dataset) == 10
    for batch_idx, (inputs, targets) in enumerate(loader):
        assert inputs.shape == (4, 4) and targets.dtype == torch.int64 and batch_idx < 2
    assert loader.batch_size == 4 and dataset[3][1] == 3
    inputs, targets = next(iter(data.DataLoader(dataset, batch_size=len(dataset))))
    return targets.tolist(), inputs.sum().item()


def habit_datasets_of_ones_own(torch):
    data = _data(torch)

    class Squares(data.Dataset):
        def __init__(self, count, transform=None):
            self.count, self.transform = count, transform

        def __len__(self):
            return self.count

        def __getitem__(self, idx):
            if torch.is_tensor(idx):
                idx = idx.tolist()
            x = torch.tensor([float(idx)])
            return {"x": self.transform(x) if self.transform else x, "y": idx**2, "name": f"n{idx}"}

    loader = data.DataLoader(Squares(5, lambda x: x * 2), batch_size=2, pin_memory=False)
    batches = list(loader)
    assert batches[0]["name"] == ["n0", "n1"] and batches[-1]["x"].shape == (1, 1)
    return [b["y"].tolist() for b in batches], [b["x"].tolist() for b in batches]


def habit_splits(torch):
    data = _data(torch)
    dataset = data.TensorDataset(torch.arange(10))
    train, val = data.random_split(dataset, [8, 2], generator=torch.Generator().manual_seed(42))
    assert len(train) == 8 and len(val) == 2
    assert sorted(train.indices + val.indices) == list(range(10))
    parts = data.random_split(dataset, [0.5, 0.3, 0.2])
    assert [len(part) for part in parts] == [5, 3, 2]
    both = data.ConcatDataset([data.Subset(dataset, [0, 1]), data.Subset(dataset, range(5, 7))])
    return [both[i][0].item() for i in range(len(both))]


def habit_batches_of_ones_own(torch):
    data, rnn = _data(torch), torch.nn.utils.rnn

    def collate(samples):
        sequences, labels = zip(*samples, strict=True)
        lengths = torch.tensor([len(s) for s in sequences], dtype=torch.long)
        padded = rnn.pad_sequence(sequences, batch_first=True, padding_value=-1)
        return padded, lengths, torch.stack(labels)

    samples = [(torch.arange(n), torch.tensor(float(n))) for n in (2, 4, 1)]
    loader = data.DataLoader(samples, batch_size=3, collate_fn=collate, worker_init_fn=None)
    padded, lengths, labels = next(iter(loader))
    return padded.tolist(), lengths.tolist(), labels.tolist()


def habit_samplers(torch):
    data = _data(torch)
    dataset = data.TensorDataset(torch.arange(6))
    weights = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    sampler = data.WeightedRandomSampler(weights, num_samples=4, replacement=True)
    assert [x.tolist() for (x,) in data.DataLoader(dataset, sampler=sampler, batch_size=2)] == [
        [2, 2]
    ] * 2
    batches = data.BatchSampler(data.SequentialSampler(dataset), batch_size=4, drop_last=False)
    assert list(batches) == [[0, 1, 2, 3], [4, 5]]
    subset = data.SubsetRandomSampler([1, 3])
    assert sorted(x.item() for (x,) in data.DataLoader(dataset, sampler=subset)) == [1, 3]


def habit_streams(torch):
    data = _data(torch)

    class Stream(data.IterableDataset):
        def __iter__(self):
            assert data.get_worker_info() is None
            return iter(range(5))

    return [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=2)]


def habit_random_batches(torch):
    data = torch.arange(100)
    ix = torch.randint(len(data) - 8, (4,))
    x = torch.stack([data[i : i + 8] for i in ix])
    y = torch.stack([data[i + 1 : i + 9] for i in ix])
    assert x.shape == (4, 8) and (y - x).eq(1).all()
    for perm in torch.randperm(10).split(5):
        assert data[perm].shape == (5,)
    words = np.arange(20, dtype=np.uint16)
    chunk = torch.from_numpy(words[3:7].astype(np.int64))
    return chunk.tolist()


def habit_seeds_everywhere(torch):
    def seed_everything(seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)

    seed_everything(0)
    first = torch.rand(3), torch.nn.Linear(2, 2).weight.tolist()
    seed_everything(0)
    assert (
        torch.equal(first[0], torch.rand(3)) and first[1] == torch.nn.Linear(2, 2).weight.tolist()
    )


def habit_distributions(torch):
    D = import_module(f"{torch.__name__}.distributions")
    normal = D.Normal(torch.zeros(2), torch.tensor([1.0, 2.0]))
    assert normal.sample((3,)).shape == (3, 2) and normal.rsample().shape == (2,)
    logits = waves(torch, 2, 3)
    policy = D.Categorical(logits=logits)
    action = policy.sample()
    assert action.shape == (2,) and policy.log_prob(action).shape == (2,)
    kl = D.kl_divergence(normal, D.Normal(0.0, 1.0)).sum()
    other = D.Independent(normal, 1).log_prob(torch.ones(2))
    return [
        policy.entropy().tolist(), policy.probs.tolist(), kl.item(), other.item(),
        D.Bernoulli(logits=logits).log_prob((logits > 0).float()).tolist(),
        D.Beta(torch.tensor(2.0), torch.tensor(3.0)).mean.item(), normal.entropy().tolist(),
    ]  # fmt: skip


def habit_one_hot_and_back(torch):
    labels = torch.arange(4) % 3
    hot = torch.nn.functional.one_hot(labels, num_classes=3)
    assert hot.dtype == torch.int64 and hot.argmax(dim=-1).equal(labels)
    table = {c: i for i, c in enumerate("abc")}
    codes = torch.tensor([table[c] for c in "cab"], dtype=torch.long)
    assert "".join("abc"[i] for i in codes.tolist()) == "".join("abc"[i] for i in codes) == "cab"
    return hot.tolist()
