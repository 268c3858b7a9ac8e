"""Actor-critic, a replay memory with a target network, and PPO, in an environment of their own."""

import random
from collections import deque, namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from published import report, weights
from torch.distributions import Categorical


class Env:
    def __init__(self, seed=0):
        self.r = np.random.RandomState(seed)

    def reset(self):
        self.s = self.r.randn(4).astype("float32") * 0.1
        self.t = 0
        return self.s, {}

    def step(self, a):
        self.s = (self.s * 0.9 + (0.1 if a == 1 else -0.1) * np.arange(1, 5) / 4).astype("float32")
        self.t += 1
        return self.s, float(1 - abs(self.s[0])), bool(self.t >= 8), False, {}


SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


env = Env()
model = weights(Policy())
optimizer = optim.Adam(model.parameters(), lr=3e-2)
eps = np.finfo(np.float32).eps.item()
picks = np.random.RandomState(5)


def select_action(state):
    state = torch.from_numpy(state).float()
    probs, state_value = model(state)
    m = Categorical(probs)
    m.sample()
    action = torch.tensor(int(picks.randint(2)))
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    report(m.entropy())
    return action.item()


for _ep in range(3):
    state, _ = env.reset()
    for _t in range(1, 20):
        action = select_action(state)
        state, reward, done, _, _ = env.step(action)
        model.rewards.append(reward)
        if done:
            break
    R = 0
    policy_losses = []
    value_losses = []
    returns = deque()
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=False):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    report(loss.item())
    del model.rewards[:]
    del model.saved_actions[:]
# DQN tutorial
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(4, 16)
        self.layer2 = nn.Linear(16, 2)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


device = torch.device(
    "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
)
policy_net = weights(DQN().to(device), "dqn")
target_net = DQN().to(device)
target_net.load_state_dict(policy_net.state_dict())
opt = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(100)
random.seed(1)
for _ep in range(3):
    state, info = env.reset()
    state = torch.tensor(state, dtype=torch.float32, device=device).unsqueeze(0)
    for _t in count():
        with torch.no_grad():
            a = policy_net(state).max(1).indices.view(1, 1)
        if random.random() < 0.5:
            a = torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
        obs, rew, term, trunc, _ = env.step(a.item())
        rew = torch.tensor([rew], device=device)
        nxt = None if term else torch.tensor(obs, dtype=torch.float32, device=device).unsqueeze(0)
        memory.push(state, a, nxt, rew)
        state = nxt
        if len(memory) >= 8:
            batch = Transition(*zip(*memory.sample(8), strict=False))
            mask = torch.tensor(
                tuple(map(lambda s: s is not None, batch.next_state)),
                device=device,
                dtype=torch.bool,
            )
            nonfinal = torch.cat([s for s in batch.next_state if s is not None])
            sb = torch.cat(batch.state)
            ab = torch.cat(batch.action)
            rb = torch.cat(batch.reward)
            q = policy_net(sb).gather(1, ab)
            nv = torch.zeros(8, device=device)
            with torch.no_grad():
                nv[mask] = target_net(nonfinal).max(1).values
            expected = (nv * 0.99) + rb
            loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
            opt.step()
            report(loss.item())
        tsd = target_net.state_dict()
        psd = policy_net.state_dict()
        for key in psd:
            tsd[key] = psd[key] * 0.005 + tsd[key] * (1 - 0.005)
        target_net.load_state_dict(tsd)
        if term:
            break
report(target_net.state_dict())


# PPO, as in cleanrl
def layer_init(layer, std=2**0.5, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 16)), nn.Tanh(), layer_init(nn.Linear(16, 2), std=0.01)
        )
        self.logstd = nn.Parameter(torch.zeros(1, 2))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


agent = weights(Agent(), "ppo")
optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
N, E = 8, 2
obs = torch.zeros((N, E) + (4,)).to(device)
actions = torch.zeros((N, E)).to(device)
logprobs = torch.zeros((N, E)).to(device)
rewards = torch.zeros((N, E)).to(device)
dones = torch.zeros((N, E)).to(device)
values = torch.zeros((N, E)).to(device)
rs = np.random.RandomState(3)
next_obs = torch.Tensor(rs.randn(E, 4)).to(device)
next_done = torch.zeros(E).to(device)
for update in range(2):
    optimizer.param_groups[0]["lr"] = (1.0 - update / 2) * 2.5e-4
    for step in range(N):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(
                next_obs, torch.tensor(rs.randint(0, 2, E))
            )
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        next_obs, reward, done = rs.randn(E, 4), rs.rand(E), rs.rand(E) < 0.2
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done).to(device)
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(N)):
            if t == N - 1:
                nextnonterminal = 1.0 - next_done
                nextvalues = next_value
            else:
                nextnonterminal = 1.0 - dones[t + 1]
                nextvalues = values[t + 1]
            delta = rewards[t] + 0.99 * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + 0.99 * 0.95 * nextnonterminal * lastgaelam
        returns = advantages + values
    b_obs = obs.reshape((-1,) + (4,))
    b_logprobs = logprobs.reshape(-1)
    b_actions = actions.reshape((-1,))
    b_adv = advantages.reshape(-1)
    b_ret = returns.reshape(-1)
    b_val = values.reshape(-1)
    b_inds = np.arange(N * E)
    clipfracs = []
    for _epoch in range(2):
        rs.shuffle(b_inds)
        for start in range(0, N * E, 8):
            mb = b_inds[start : start + 8]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                b_obs[mb], b_actions.long()[mb]
            )
            logratio = newlogprob - b_logprobs[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
                clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
            mba = b_adv[mb]
            mba = (mba - mba.mean()) / (mba.std() + 1e-8)
            pg_loss = torch.max(-mba * ratio, -mba * torch.clamp(ratio, 0.8, 1.2)).mean()
            newvalue = newvalue.view(-1)
            v_un = (newvalue - b_ret[mb]) ** 2
            v_cl = b_val[mb] + torch.clamp(newvalue - b_val[mb], -0.2, 0.2)
            v_loss = 0.5 * torch.max(v_un, (v_cl - b_ret[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            report(loss.item(), approx_kl.item())
    y_pred, y_true = b_val.cpu().numpy(), b_ret.cpu().numpy()
    report(float(np.var(y_true - y_pred)))
