"""Translation with attention, packed sequences, a CRF, and a series predicted with LBFGS."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from published import report, weights
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SOS_token = 0
EOS_token = 1
MAX_LENGTH = 6


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.0):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.Wa = nn.Linear(h, h)
        self.Ua = nn.Linear(h, h)
        self.Va = nn.Linear(h, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        w = F.softmax(scores, dim=-1)
        return torch.bmm(w, keys), w


class AttnDecoderRNN(nn.Module):
    def __init__(self, h, out):
        super().__init__()
        self.embedding = nn.Embedding(out, h)
        self.attention = BahdanauAttention(h)
        self.gru = nn.GRU(2 * h, h, batch_first=True)
        self.out = nn.Linear(h, out)

    def forward(self, enc, hid, target_tensor=None):
        b = enc.size(0)
        inp = torch.empty(b, 1, dtype=torch.long, device=device).fill_(SOS_token)
        outs = []
        atts = []
        for i in range(MAX_LENGTH):
            emb = self.embedding(inp)
            query = hid.permute(1, 0, 2)
            ctx, w = self.attention(query, enc)
            o, hid = self.gru(torch.cat((emb, ctx), dim=2), hid)
            o = self.out(o)
            outs.append(o)
            atts.append(w)
            if target_tensor is not None:
                inp = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                inp = topi.squeeze(-1).detach()
        outs = torch.cat(outs, dim=1)
        return F.log_softmax(outs, dim=-1), hid, torch.cat(atts, dim=1)


r = np.random.RandomState(0)
input_ids = r.randint(2, 12, (16, MAX_LENGTH)).astype(np.int32)
target_ids = input_ids[:, ::-1].copy()
target_ids[:, -1] = EOS_token
ds = TensorDataset(torch.LongTensor(input_ids).to(device), torch.LongTensor(target_ids).to(device))
dl = DataLoader(ds, batch_size=4)
dl2 = DataLoader(ds, sampler=RandomSampler(ds), batch_size=4)
report(sum(len(a) for a, b in dl2))
enc = weights(EncoderRNN(12, 8).to(device), "e")
dec = weights(AttnDecoderRNN(8, 12).to(device), "d")
eo = optim.Adam(enc.parameters(), lr=0.01)
do = optim.Adam(dec.parameters(), lr=0.01)
crit = nn.NLLLoss()
for _ep in range(2):
    for x, y in dl:
        eo.zero_grad()
        do.zero_grad()
        e, h = enc(x)
        o, _, _ = dec(e, h, y)
        loss = crit(o.view(-1, o.size(-1)), y.view(-1))
        loss.backward()
        eo.step()
        do.step()
        report(loss.item())
with torch.no_grad():
    e, h = enc(ds[0][0].unsqueeze(0))
    o, _, att = dec(e, h)
    _, topi = o.topk(1)
    ids = topi.squeeze()
    words = []
    for idx in ids:
        if idx.item() == EOS_token:
            words.append(-1)
            break
        words.append(idx.item())
    report(words, att)


# packed LSTM classifier
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 6, padding_idx=0)
        self.l = nn.LSTM(6, 5, bidirectional=True, batch_first=True, num_layers=2)
        self.o = nn.Linear(10, 3)

    def forward(self, x, n):
        p = pack_padded_sequence(self.e(x), n.cpu(), batch_first=True, enforce_sorted=False)
        out, (h, c) = self.l(p)
        out, lens = pad_packed_sequence(out, batch_first=True)
        return self.o(torch.cat([h[-2], h[-1]], 1)), out.sum(1), lens


seqs = [torch.tensor(r.randint(1, 12, n)) for n in (3, 5, 2)]
x = pad_sequence(seqs, batch_first=True, padding_value=0)
n = torch.tensor([len(s) for s in seqs], dtype=torch.long)
m = weights(Packed(), "p")
a, b, lens = m(x, n)
loss = F.cross_entropy(a, torch.tensor([0, 1, 2], dtype=torch.long))
loss.backward()
report(loss.item(), b, lens, m.e.weight.grad)
# BiLSTM-CRF tutorial
START_TAG = "<START>"
STOP_TAG = "<STOP>"


def argmax(vec):
    _, idx = torch.max(vec, 1)
    return idx.item()


def log_sum_exp(vec):
    max_score = vec[0, argmax(vec)]
    mb = max_score.view(1, -1).expand(1, vec.size()[1])
    return max_score + torch.log(torch.sum(torch.exp(vec - mb)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab, t2i, emb, hid):
        super().__init__()
        self.t2i = t2i
        self.T = len(t2i)
        self.hidden_dim = hid
        self.word_embeds = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hid // 2, num_layers=1, bidirectional=True)
        self.h2t = nn.Linear(hid, self.T)
        self.transitions = nn.Parameter(torch.randn(self.T, self.T))
        self.transitions.data[t2i[START_TAG], :] = -10000
        self.transitions.data[:, t2i[STOP_TAG]] = -10000
        self.hidden = self.init_hidden()

    def init_hidden(self):
        return (torch.zeros(2, 1, self.hidden_dim // 2), torch.zeros(2, 1, self.hidden_dim // 2))

    def _forward_alg(self, feats):
        init_alphas = torch.full((1, self.T), -10000.0)
        init_alphas[0][self.t2i[START_TAG]] = 0.0
        fv = init_alphas
        for feat in feats:
            at = []
            for nt in range(self.T):
                es = feat[nt].view(1, -1).expand(1, self.T)
                ts = self.transitions[nt].view(1, -1)
                at.append(log_sum_exp(fv + ts + es).view(1))
            fv = torch.cat(at).view(1, -1)
        return log_sum_exp(fv + self.transitions[self.t2i[STOP_TAG]])

    def feats(self, s):
        self.hidden = self.init_hidden()
        e = self.word_embeds(s).view(len(s), 1, -1)
        o, self.hidden = self.lstm(e, self.hidden)
        return self.h2t(o.view(len(s), self.hidden_dim))

    def _score(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([self.t2i[START_TAG]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[self.t2i[STOP_TAG], tags[-1]]

    def nll(self, s, t):
        f = self.feats(s)
        return self._forward_alg(f) - self._score(f, t)

    def forward(self, s):
        feats = self.feats(s)
        bps = []
        iv = torch.full((1, self.T), -10000.0)
        iv[0][self.t2i[START_TAG]] = 0
        fv = iv
        for feat in feats:
            bp = []
            vv = []
            for nt in range(self.T):
                ntv = fv + self.transitions[nt]
                b = argmax(ntv)
                bp.append(b)
                vv.append(ntv[0][b].view(1))
            fv = (torch.cat(vv) + feat).view(1, -1)
            bps.append(bp)
        tv = fv + self.transitions[self.t2i[STOP_TAG]]
        best = argmax(tv)
        ps = tv[0][best]
        path = [best]
        for bp in reversed(bps):
            best = bp[best]
            path.append(best)
        path.pop()
        path.reverse()
        return ps, path


t2i = {"B": 0, "I": 1, "O": 2, START_TAG: 3, STOP_TAG: 4}
model = weights(BiLSTM_CRF(7, t2i, 4, 4), "crf")
opt = optim.SGD(model.parameters(), lr=0.01, weight_decay=1e-4)
s = torch.tensor([0, 1, 2, 3, 4], dtype=torch.long)
t = torch.tensor([0, 1, 1, 2, 2], dtype=torch.long)
for _i in range(2):
    model.zero_grad()
    loss = model.nll(s, t)
    loss.backward()
    opt.step()
    report(loss)
with torch.no_grad():
    report(model(s))


# time sequence prediction
class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 7)
        self.lstm2 = nn.LSTMCell(7, 7)
        self.linear = nn.Linear(7, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        h2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        c2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h2, c2 = self.lstm2(h_t, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        for _i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h2, c2 = self.lstm2(h_t, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


seq = Sequence()
seq.double()
weights(seq, "s")
data = np.sin(np.arange(40).reshape(4, 10) / 3.0)
inp = torch.from_numpy(data[1:, :-1])
tgt = torch.from_numpy(data[1:, 1:])
crit = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8)
for _i in range(2):

    def closure():
        optimizer.zero_grad()
        loss = crit(seq(inp), tgt)
        loss.backward()
        return loss

    report(optimizer.step(closure).item())
with torch.no_grad():
    report(seq(inp, future=5).detach().cpu().numpy()[:, -5:].tolist())
