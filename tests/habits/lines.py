"""Typical lines of PyTorch programs; the value of the last expression is compared."""

import copy
import io
import pickle

import numpy as np

LINES = r"""
torch.tensor(3.14159).item().__format__(".2f")
x=torch.arange(6.).view(2,3); x[:,1:]-=1; x.tolist()
x=torch.ones(3,requires_grad=True); y=x*2; y[0]=5; y.sum().backward(); x.grad.tolist()
x=torch.arange(3.); x.new(2).shape[0]
x=torch.tensor([1.,2.]); (x==torch.tensor([1.,3.])).float().mean().item()
torch.tensor([[1.,2.],[3.,4.]]).inverse().tolist()
x=torch.randn(3,4); x.shape == (3,4), x.shape == [3,4], x.shape[0] == 3, tuple(x.shape)
x=torch.zeros(3); x.index_fill_(0, torch.tensor([1],dtype=torch.long), 2.).tolist()
torch.arange(5)[torch.arange(5) > 2].tolist()
[p.shape for p in torch.nn.Linear(2,3).parameters()]
m=torch.nn.Linear(2,3); m.weight.shape[1], m.bias.data.shape
x=torch.ones(2,2); x.fill_diagonal_(0).tolist()
torch.cat([torch.zeros(0), torch.ones(2)]).tolist()
torch.stack([torch.tensor(1.), torch.tensor(2.)]).mean().item()
torch.as_tensor([1.,2.]).sum().item()
torch.tensor([l.item() for l in [torch.tensor(1.), torch.tensor(2.)]]).tolist()
torch.tensor([torch.tensor(1.), torch.tensor(2.)]).tolist()
torch.Tensor([1,2]).tolist()
torch.LongTensor([1,2]).dtype.is_floating_point
torch.tensor(np.array([1,2])).tolist()
torch.zeros(3, dtype=torch.long).tolist()
torch.nn.functional.cross_entropy(torch.zeros(2,3), torch.tensor([0,1]).long()).item()
isinstance(torch.nn.ReLU(), torch.nn.Module)
sum(p.sum() for p in torch.nn.Linear(2,2).parameters()).dim()
torch.nn.utils.clip_grad_norm_([torch.nn.Parameter(torch.ones(2))], 1.0).item()
x=torch.rand(4); x.topk(2)[1].shape[0]
torch.ones(2,3).sum(-1, keepdim=True).shape[1]
list(map(float, torch.tensor([1.,2.])))
torch.ones(3).cumsum(0)[-1].item()
x=torch.arange(4); x[-1].item(), x[1:3].tolist(), x[::2].tolist()
x=torch.arange(4.); x.flip(0).tolist(), x.roll(1).tolist()
torch.allclose(torch.ones(2), torch.ones(2)+1e-7)
torch.nn.Sequential(torch.nn.Linear(2,2)).state_dict()["0.weight"].shape[0]
m=torch.nn.BatchNorm1d(2); m.momentum=0.5; m.running_mean.fill_(1); m.running_mean.tolist()
m=torch.nn.Dropout(0.3); m.p
torch.nn.LSTM(2,3).hidden_size
o=torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))]); o.defaults["weight_decay"]
o=torch.optim.Adam([torch.nn.Parameter(torch.ones(1))]); repr(o)
torch.nn.Module().training
torch.nn.ModuleList([torch.nn.Linear(1,1)])[0].in_features
m=torch.nn.ModuleDict(); m["a"]=torch.nn.Linear(1,1); list(m), "a" in m, len(m)
torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(1))})["a"].item()
m=torch.nn.Linear(2,2); m.weight.grad is None, m.weight.requires_grad, m.weight.is_leaf
x=torch.ones(2,2,requires_grad=True); (x.T @ x).sum().backward(); x.grad.sum().item()
x=torch.ones(1,requires_grad=True); y=x.clone(); y.requires_grad, y.is_leaf
x=torch.ones(3,requires_grad=True); x.detach().requires_grad, x.data.requires_grad
x=torch.ones(2,requires_grad=True); x.sum().backward(); x.grad.zero_().tolist()
x=torch.ones(2,requires_grad=True); y=x.sum(); y.backward(); x.grad.data.tolist()
torch.where(torch.tensor([True,False]))[0].tolist()
torch.tensor([1.,float("nan")]).isnan().tolist()
torch.isnan(torch.tensor(1.)).item(), torch.isinf(torch.tensor(float("inf"))).item()
torch.clamp(torch.tensor([-1.,2.]),0,1).tolist()
torch.lerp(torch.zeros(2), torch.ones(2), 0.3).tolist()
torch.addcmul(torch.zeros(2), torch.ones(2), torch.ones(2), value=0.5).tolist()
torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0].shape[1]
torch.cartesian_prod(torch.arange(2), torch.arange(2)).shape[0]
torch.combinations(torch.arange(3)).tolist()
torch.triu_indices(3,3,1).tolist()
torch.histc(torch.tensor([1.,2.,1.]), bins=2, min=1, max=2).tolist()
torch.bucketize(torch.tensor([1.5]), torch.tensor([1.,2.])).tolist()
torch.searchsorted(torch.tensor([1.,2.]), torch.tensor([1.5])).tolist()
torch.tril(torch.ones(2,2)).bool().tolist()
torch.diag(torch.tensor([1.,2.])).tolist()
torch.diag_embed(torch.ones(1,2)).shape[2]
torch.einsum("i,j->ij", torch.ones(2), torch.ones(3)).shape[1]
torch.tensordot(torch.ones(2,3), torch.ones(3,4), dims=1).shape[1]
torch.kron(torch.eye(2), torch.ones(1,2)).shape[1]
torch.linalg.norm(torch.tensor([3.,4.])).item()
torch.linalg.svd(torch.eye(2))[1].tolist()
torch.linalg.eigh(torch.eye(2)).eigenvalues.tolist()
torch.linalg.solve(torch.eye(2), torch.ones(2)).tolist()
torch.fft.fft(torch.ones(4)).real.tolist(), torch.fft.rfft(torch.ones(4)).abs().tolist()
torch.stft(torch.ones(16), n_fft=4, return_complex=True, window=torch.hann_window(4)).shape[0]
torch.complex(torch.ones(1), torch.ones(1)).abs().item()
torch.view_as_real(torch.complex(torch.ones(1), torch.ones(1))).tolist()
torch.tensor([1+2j]).imag.tolist()
torch.pi, torch.inf, torch.e
torch.Size([2,3]).numel()
torch.iinfo(torch.int32).max, torch.finfo(torch.float32).eps, torch.finfo(torch.float16).min
torch.get_default_dtype() == torch.float32
torch.is_floating_point(torch.ones(1)), torch.is_tensor(1), torch.numel(torch.ones(2))
torch.can_cast(torch.float32, torch.int64)
torch.broadcast_shapes((2,1),(1,3))
torch.broadcast_tensors(torch.ones(2,1), torch.ones(1,3))[0].shape[1]
torch.atleast_2d(torch.ones(2)).shape[0]
torch.tensor_split(torch.arange(5), 2)[0].tolist()
torch.swapaxes(torch.ones(2,3),0,1).shape[0]
torch.nan_to_num(torch.tensor([float("nan")]), nan=1.).tolist()
torch.count_nonzero(torch.tensor([1.,0.])).item()
torch.unique(torch.tensor([1,1,2]).long(), return_counts=True)[1].tolist()
torch.unique_consecutive(torch.tensor([1.,1.,2.])).tolist()
torch.quantile(torch.arange(5.), 0.5).item()
torch.std_mean(torch.arange(3.))[1].item()
torch.aminmax(torch.arange(3.)).max.item()
torch.argwhere(torch.tensor([0.,1.])).tolist()
torch.gather(torch.arange(4.).view(2,2), 1, torch.zeros(2,1).long()).tolist()
torch.scatter(torch.zeros(1,3), 1, torch.tensor([[1]]).long(), 1.).tolist()
torch.take_along_dim(torch.arange(4.).view(2,2), torch.zeros(2,1).long(), 1).tolist()
torch.nn.functional.pad(torch.ones(1,1,2,2), (1,1,1,1), mode="reflect").shape[3]
torch.nn.functional.affine_grid(torch.eye(2,3)[None], (1,1,2,2), align_corners=False).shape[3]
torch.nn.functional.gumbel_softmax(torch.zeros(2,3), hard=True).sum().item()
torch.nn.functional.multi_head_attention_forward.__name__
torch.nn.functional.threshold(torch.ones(1), 2., 0.).item()
torch.nn.functional.margin_ranking_loss(torch.ones(1), torch.zeros(1), torch.ones(1)).item()
torch.nn.functional.softmin(torch.zeros(2), dim=0).tolist()
torch.nn.functional.upsample(torch.ones(1,1,2,2), scale_factor=2).shape[3]
torch.nn.functional.adaptive_avg_pool2d(torch.ones(1,1,4,4), (2,None)).shape[3]
torch.nn.functional.conv2d(torch.ones(1,1,3,3), torch.ones(1,1,2,2), None, 1, "same").shape[3]
torch.nn.Conv2d(1,1,3,padding="same")(torch.ones(1,1,4,4)).shape[3]
torch.nn.Unfold(2)(torch.ones(1,1,3,3)).shape[1]
torch.nn.Identity()(5)
torch.nn.Softmax()(torch.zeros(1,2)).tolist()
torch.nn.functional.softmax(torch.zeros(1,2)).tolist()
torch.nn.init.xavier_uniform(torch.zeros(2,2)).shape[0]
torch.random.manual_seed(0).initial_seed()
torch.seed() > 0
torch.rand(2, generator=torch.Generator().manual_seed(0)).shape[0]
torch.rand([2,3]).shape[1], torch.rand((2,3)).shape[1], torch.rand(torch.Size([2])).shape[0]
torch.randn(2, requires_grad=True).is_leaf
torch.empty(2,3).uniform_(-1,1).abs().max().item() <= 1
torch.zeros(2).bernoulli_(1.0).tolist()
torch.zeros(3).random_(0, 2).max().item() <= 1
torch.ones(2).half().dtype.itemsize
str(torch.ones(1).dtype)[-7:]
torch.ones(2).is_shared()
torch.ones(2).ndimension(), torch.ones(2,3).nelement()
torch.ones(2).eq(1).all().item(), torch.ones(2).equal(torch.ones(2))
torch.ones(2).tile(2).tolist(), torch.ones(1,2).repeat_interleave(2,0).shape[0]
torch.ones(2,2).tril().sum().item(), torch.ones(2,2).trace().item()
torch.tensor([True,False]).sum().item(), torch.tensor([True,False]).float().mean().item()
torch.ones(2).var(dim=0, correction=0).item(), torch.ones(2).std(unbiased=False).item()
torch.ones(2).__len__(), 1.0 in torch.ones(2), list(reversed(torch.arange(3)))[0].item()
range(torch.tensor(3).long())[-1]
torch.tensor(1.) in [torch.tensor(1.)]
torch.tensor([[1,2],[3,4]], dtype=torch.float).mean(dim=0).tolist()
torch.utils.data.default_collate([{"a":1},{"a":2}])["a"].tolist()
next(iter(torch.utils.data.DataLoader(list(range(4)), batch_size=2))).tolist()
len(torch.utils.data.Subset(list(range(4)), [0,1]))
torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True).tolist()
torch.nn.utils.weight_norm(torch.nn.Linear(2,2)).weight_g.shape[0]
torch.nn.utils.spectral_norm(torch.nn.Linear(2,2)).weight_orig.shape[0]
x=torch.ones(2,requires_grad=True); torch.autograd.backward([(x*2).sum()]); x.grad.tolist()
torch.backends.cudnn.enabled, torch.backends.cudnn.is_available() in (True,False)
m=torch.nn.Linear(2,2); torch.nn.utils.parameters_to_vector(m.parameters()).shape[0]
m=torch.nn.Linear(2,2); m.extra=5; m.extra, "extra" in m.__dict__
m=torch.nn.Sequential(torch.nn.Linear(2,2)); m._modules["0"].in_features, list(m._parameters)
m=torch.nn.Linear(2,2); list(m._parameters), m._buffers
m=torch.nn.Linear(2,2); m.state_dict()._metadata[""]["version"]
m=torch.nn.Linear(2,2); [(n, type(p).__name__) for n,p in m.named_parameters()]
m=torch.nn.Linear(2,2); type(m.state_dict()).__name__, type(m.state_dict()["weight"]).__name__
m=torch.nn.Linear(2,2); len(list(m.modules())), list(m.children())
m=torch.nn.Linear(2,2); m.weight[0,0].item() == m.weight.data[0,0].item()
m=torch.nn.Embedding(3,2); m.weight.data.uniform_(-1,1).abs().max().item() <= 1
m=torch.nn.Embedding(3,2,_weight=torch.ones(3,2)); m.weight.sum().item()
m=torch.nn.LSTM(2,3); m.weight_ih_l0.shape[0], m.all_weights[0][0].shape[0]
m=torch.nn.TransformerEncoderLayer(4,2); sorted(dict(m.named_children()))
m=torch.nn.MultiheadAttention(4,2); [n for n,_ in m.named_parameters()]
x=torch.ones(2); x.requires_grad=True; x.requires_grad
x=torch.ones(2); x.grad=torch.ones(2); x.grad.tolist()
x=torch.ones(2); x[None,:,None].shape[2], x[...,None].shape[1]
x=torch.arange(3); x.tolist().index(1), x.numpy().tolist().count(1)
x=torch.ones(2,3); a,b=x.shape; a*b
x=torch.ones(2,3); x.shape[0] // 2, x.size(1) ** 0.5
x=torch.ones(2,3); [*x.shape], (*x.shape[:1], 5), x.view(*x.shape[:1], -1).shape[1]
b=io.BytesIO(); torch.save(torch.nn.Linear(1,1).state_dict(), b); b.seek(0); list(torch.load(b))
pickle.loads(pickle.dumps(torch.nn.Linear(2,2))).in_features
copy.deepcopy(torch.optim.Adam([torch.nn.Parameter(torch.ones(1))])).defaults["lr"]
torch.distributions.Normal(0.,1.).log_prob(torch.tensor(0.)).item()
torch.distributions.Categorical(torch.tensor([1.,1.])).entropy().item()
x=torch.tensor([1,4]).long(); (x << 1).tolist(), (x >> 1).tolist(), (1 << x).tolist()
list(reversed(torch.arange(3)))[0].item()
torch.arange(3.).new([1,2]).tolist()
[n for n in range(*torch.tensor([1,4]).long().tolist())]
x=torch.arange(6).view(2,3); [r.tolist() for r in x.T], [c.item() for c in x[:,0]]
m=torch.nn.Linear(2,2); sum(p.data.nelement() for p in m.parameters())
x=torch.zeros(2,2); x[torch.tensor([True,False])]=1; x.tolist()
x=torch.zeros(3); x[torch.tensor([0,2]).long()]+=1; x.tolist()
x=torch.zeros(2,3); x[:,torch.arange(2)]=5.; x.sum().item()
x=torch.arange(4.); x[x>1]*=2; x.tolist()
x=torch.zeros(2,3); x[...,-1]=1; x[0,:]=torch.arange(3.); x.tolist()
x=torch.arange(4.).view(2,2); x[[1,0]].tolist(), x[:,[1]].tolist(), x[None].shape[0]
a,b=torch.arange(4.).view(2,2).unbind(1); (a*b).tolist()
x=torch.ones(2,2); (x.sum(0)/x.sum()).tolist(), (x/x.sum(1,keepdim=True)).tolist()
x=torch.tensor([2.,1.]); i=x.argsort(); x[i].tolist(), i.tolist()
x=torch.arange(3.); torch.stack([x,x**2],dim=-1).tolist()
x=torch.arange(3.); ((x-x.mean())/x.std()).tolist()
x=torch.tensor([1.,2.]); x.softmax(0).log().tolist(), torch.log_softmax(x,0).tolist()
x=torch.tensor([[1.,2.],[3.,4.]]); torch.det(x).item(), torch.trace(x).item(), x.mm(x).tolist()
x=torch.tensor([1.,2.]); x.unsqueeze(1).expand(-1,3).sum(1).tolist()
x=torch.tensor([1.,2.,3.]); (x[1:]-x[:-1]).tolist(), x.diff().tolist()
x=torch.tensor([1.,2.,3.]); torch.dot(x,x).sqrt().item(), x.norm().item()
x=torch.tensor([3,1,2]).long(); torch.zeros(4).index_add(0,x,torch.ones(3)).tolist()
x=torch.tensor([0,1,1]).long(); torch.bincount(x).tolist(), x.unique().tolist()
m=torch.nn.BatchNorm1d(2); m.eval()(torch.ones(1,2)).shape[0], m.num_batches_tracked.item()
m=torch.nn.Sequential(); m.add_module("a",torch.nn.Identity()); len(m), m.a(3)
m=torch.nn.Linear(1,1); m.apply(lambda l: l.weight.data.zero_()).weight.item()
m=torch.nn.Linear(2,3); tuple(m.weight.t().shape), m.out_features, m.extra_repr()
m=torch.nn.MSELoss(reduction="sum"); m(torch.ones(2),torch.zeros(2)).item(), m.reduction
m=torch.nn.L1Loss(); m(torch.ones(2),torch.zeros(2)).item()
m=torch.nn.KLDivLoss(reduction="batchmean"); m(torch.zeros(1,2),torch.ones(1,2)/2).item()
m=torch.nn.CosineSimilarity(dim=0); m(torch.ones(2),torch.ones(2)).item()
torch.nn.functional.one_hot(torch.tensor([1]).long()).tolist()
torch.nn.functional.embedding(torch.tensor([1]).long(), torch.arange(4.).view(2,2)).tolist()
torch.nn.functional.batch_norm(torch.ones(2,1), torch.zeros(1), torch.ones(1)).tolist()
torch.nn.functional.group_norm(torch.arange(4.).view(1,4), 2).tolist()
torch.nn.functional.cosine_embedding_loss(torch.ones(1,2),torch.ones(1,2),torch.ones(1)).item()
torch.nn.functional.triplet_margin_loss(torch.ones(1,2),torch.ones(1,2),torch.zeros(1,2)).item()
torch.nn.functional.pixel_shuffle(torch.ones(1,4,1,1),2).shape[2]
torch.nn.functional.poisson_nll_loss(torch.ones(1),torch.ones(1)).item()
torch.nn.functional.nll_loss(torch.zeros(1,2).log_softmax(1),torch.tensor([1]).long()).item()
torch.nn.functional.cross_entropy(torch.zeros(1,2),torch.tensor([[0.3,0.7]])).item()
torch.nn.functional.cross_entropy(torch.zeros(2,3,2),torch.zeros(2,2).long()).item()
torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]),torch.ones(1)).item()
torch.nn.functional.fold(torch.ones(1,4,4),(3,3),(2,2)).flatten().tolist()
torch.nn.functional.bilinear(torch.ones(1,2),torch.ones(1,2),torch.ones(1,2,2)).item()
torch.cdist(torch.zeros(1,2),torch.ones(1,2)).item(), torch.pdist(torch.eye(2)).tolist()
torch.max(torch.tensor([1.,3.])).item(), torch.min(torch.tensor([[1.,3.]]),dim=1)[0].tolist()
torch.squeeze(torch.ones(1,2)).shape[0], torch.unsqueeze(torch.ones(2),0).shape[0]
torch.transpose(torch.ones(2,3),0,1).shape[0], torch.permute(torch.ones(2,3),(1,0)).shape[0]
torch.reshape(torch.ones(4),(2,2)).shape[0], torch.flatten(torch.ones(2,2)).shape[0]
torch.rand_like(torch.ones(2)).shape[0], torch.randint_like(torch.ones(2),5).shape[0]
torch.multinomial(torch.tensor([0.,1.]),1).item(), torch.poisson(torch.zeros(2)).tolist()
torch.sort(torch.tensor([2.,1.]))[0].tolist(), torch.argsort(torch.tensor([2.,1.])).tolist()
torch.masked_select(torch.arange(3),torch.tensor([True,False,True])).tolist()
torch.index_select(torch.arange(4.).view(2,2),0,torch.tensor([1]).long()).tolist()
torch.split(torch.arange(4),[1,3])[1].tolist(), torch.chunk(torch.arange(4),2)[1].tolist()
torch.full_like(torch.ones(2),3).tolist(), torch.zeros_like(torch.ones(2)).tolist()
torch.var(torch.arange(3.)).item(), torch.std(torch.arange(3.),unbiased=False).item()
torch.any(torch.tensor([0.,1.]).bool()).item(), torch.all(torch.ones(2).bool()).item()
torch.logspace(0,1,2).tolist(), torch.linspace(0,1,3).tolist(), torch.eye(1,2).tolist()
torch.mv(torch.eye(2),torch.ones(2)).tolist(), torch.mm(torch.eye(2),torch.eye(2)).tolist()
torch.distributions.Normal(torch.zeros(1),torch.ones(1)).cdf(torch.zeros(1)).item()
torch.autograd.functional.jacobian(lambda x: x**2, torch.ones(2)).tolist()
torch.func.grad(lambda x: x.sin().sum())(torch.zeros(2)).tolist()
torch.nn.functional.interpolate(torch.arange(2.).view(1,1,2),4,mode="linear").flatten().tolist()
x=torch.ones(2,3); torch.where(x>0,0.5,x).tolist(), torch.where(x>0,x,float("-inf")).tolist()
x=torch.arange(3)[None,:]; x.expand(2,-1).tolist(), x.repeat(2,1).tolist()
x=torch.arange(6.).view(2,3); x.mean(1,keepdim=True).sub(x).pow(2).mean(-1).tolist()
getattr(torch.nn,"ReLU")().__class__.__name__, getattr(torch.optim,"Adam").__name__
m=torch.nn.ModuleList(); m+=[torch.nn.Identity()]; len(m), m[-1](3)
m=torch.nn.Linear(2,2); del m.bias; hasattr(m,"bias")
m=torch.nn.Conv2d(3,4,(3,5),stride=(1,2),padding=(1,2)); str(m), tuple(m.weight.shape), m.groups
m=torch.nn.MaxPool2d(2); m.kernel_size, m.stride, str(m), str(torch.nn.AdaptiveAvgPool2d((1,1)))
str(torch.nn.TransformerEncoderLayer(4,2,8))
str(torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])) != ""
x=torch.ones(2,requires_grad=True); y=x**2; z=y.mean(); z.backward(); x.grad.tolist(), z.item()
x=torch.ones(2,2,requires_grad=True); x[0].sum().backward(); x.grad.tolist()
x=torch.ones(3,requires_grad=True); torch.cat([x[:1],x[1:]*2]).sum().backward(); x.grad.tolist()
x=torch.ones(3,requires_grad=True); x.max().backward(); x.grad.tolist()
x=torch.ones(3,requires_grad=True); x.norm().backward(); x.grad.tolist()
x=torch.ones(2,requires_grad=True); x.clamp(max=0.5).sum().backward(); x.grad.tolist()
x=torch.tensor([0.,1.],requires_grad=True); x.relu().sum().backward(); x.grad.tolist()
x=torch.tensor([0.,-1.],requires_grad=True); x.abs().sum().backward(); x.grad.tolist()
x=torch.ones(2,requires_grad=True); torch.where(x>0,x*2,x).sum().backward(); x.grad.tolist()
x=torch.ones(2,3,requires_grad=True); x.sum(1).prod().backward(); x.grad.tolist()
x=torch.arange(3.,requires_grad=True); x.sort(descending=True)[0][0].backward(); x.grad.tolist()
x=torch.arange(3.,requires_grad=True); x.topk(2)[0].sum().backward(); x.grad.tolist()
x=torch.arange(3.,requires_grad=True); x.cumsum(0)[1].backward(); x.grad.tolist()
x=torch.zeros(2,2); x.scatter_(1,torch.tensor([[0],[1]]).long(),torch.ones(2,1)); x.tolist()
x=torch.zeros(2,2); x.scatter_add_(0,torch.tensor([[0,0]]).long(),torch.ones(1,2)); x.tolist()
a=torch.ones(2); b=a; b+=1; c=a; c=c+1; a.tolist(), c.tolist()
a=torch.ones(2); b=a.clone(); b.add_(1); a.tolist(), a.numpy().sum()
a=torch.zeros(3); a[1:]=torch.arange(2.); a[-1]+=5; a[:1].fill_(2); a.tolist()
d={"a":torch.ones(1)}; {k:v.to("cpu") for k,v in d.items()}["a"].item()
""".strip().splitlines()


def run(torch, line):
    """Run a line of statements separated by semicolons; return the value of the last one."""
    *statements, expression = line.split("; ")
    names = {"torch": torch, "np": np, "copy": copy, "io": io, "pickle": pickle}
    exec("\n".join(statements), names)
    return eval(expression, names)
