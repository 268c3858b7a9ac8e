"""Small published programs: reinforcement learning, attacks, distillation, graphs."""

from importlib import import_module

from habits.common import batch, classifier, settle, waves


def habit_reinforce(torch):
    """REINFORCE: a policy's log probabilities, discounted returns, and their product."""
    D = import_module(f"{torch.__name__}.distributions")
    policy = classifier(torch)
    saved, rewards = [], [1.0, 0.0, 2.0]
    for state in batch(torch)[0][:3].numpy():
        probs = torch.softmax(policy(torch.from_numpy(state).float().unsqueeze(0)), dim=1)
        m = D.Categorical(probs)
        saved.append(m.log_prob(torch.argmax(probs, dim=1)))
        assert m.sample().item() in (0, 1, 2)
    R, returns = 0, []
    for r in rewards[::-1]:
        R = r + 0.9 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = torch.cat([-p * R for p, R in zip(saved, returns, strict=True)]).sum()
    loss.backward()
    return loss.item(), policy[2].bias.grad.tolist()


def habit_deep_q(torch):
    """DQN: a target network, gathered values, a masked assignment, and a soft update."""
    policy_net, target_net = classifier(torch), classifier(torch)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=0.01, amsgrad=True)
    states, actions = batch(torch)
    final = torch.tensor([i % 2 == 0 for i in range(6)], dtype=torch.bool)
    values = policy_net(states).gather(1, actions.unsqueeze(1))
    next_values = torch.zeros(6)
    with torch.no_grad():
        next_values[final] = target_net(states[final]).max(1).values
    expected = (next_values * 0.9) + torch.ones(6)
    loss = torch.nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target, own = target_net.state_dict(), policy_net.state_dict()
    for key in own:
        target[key] = own[key] * 0.5 + target[key] * 0.5
    target_net.load_state_dict(target)
    return (
        loss.item(),
        target_net(states).tolist(),
        policy_net(states[:1]).max(1).indices.view(1, 1).tolist(),
    )


def habit_ppo(torch):
    """PPO: clipped ratios, normalized advantages, entropy, and a separate critic."""
    D = import_module(f"{torch.__name__}.distributions")
    actor, critic = classifier(torch), settle(torch, torch.nn.Linear(4, 1))
    obs, actions = batch(torch)
    old = D.Categorical(logits=waves(torch, 6, 3)).log_prob(actions).detach()
    advantages = waves(torch, 6)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    dist = D.Categorical(logits=actor(obs))
    ratio = (dist.log_prob(actions) - old).exp()
    clipped = torch.clamp(ratio, 1 - 0.2, 1 + 0.2)
    pg_loss = torch.max(-advantages * ratio, -advantages * clipped).mean()
    v_loss = 0.5 * ((critic(obs).view(-1) - waves(torch, 6)) ** 2).mean()
    loss = pg_loss - 0.01 * dist.entropy().mean() + v_loss * 0.5
    parameters = list(actor.parameters()) + list(critic.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-2, eps=1e-5)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    optimizer.step()
    kl = ((ratio - 1) - ratio.log()).mean()
    return (
        loss.item(),
        kl.item(),
        ((ratio - 1.0).abs() > 0.2).float().mean().item(),
        actor(obs).sum().item(),
    )


def habit_adversaries(torch):
    """FGSM and PGD: gradients of inputs, and projected steps."""
    model, (x, y) = classifier(torch).eval(), batch(torch)
    data = x.clone()
    data.requires_grad = True
    loss = torch.nn.functional.cross_entropy(model(data), y)
    model.zero_grad()
    loss.backward()
    perturbed = torch.clamp(data + 0.1 * data.grad.data.sign(), -1, 1)
    adversary = x.clone().detach()
    for _ in range(2):
        adversary.requires_grad_()
        with torch.enable_grad():
            loss = torch.nn.functional.cross_entropy(model(adversary), y)
        grad = torch.autograd.grad(loss, [adversary])[0]
        adversary = adversary.detach() + 0.05 * torch.sign(grad.detach())
        adversary = torch.min(torch.max(adversary, x - 0.1), x + 0.1)
    return perturbed.tolist(), adversary.tolist()


def habit_distillation(torch):
    """Distillation with a temperature, and averaging of the states of several models."""
    F = torch.nn.functional
    teacher, student, (x, y) = classifier(torch).eval(), classifier(torch), batch(torch)
    with torch.no_grad():
        student[0].weight.mul_(0.5)
        soft = F.softmax(teacher(x) / 2.0, dim=-1)
    kd = F.kl_div(F.log_softmax(student(x) / 2.0, dim=-1), soft, reduction="batchmean") * 4.0
    (kd + F.cross_entropy(student(x), y)).backward()
    states = [teacher.state_dict(), student.state_dict()]
    mean = {k: torch.stack([s[k].float() for s in states], 0).mean(0) for k in states[0]}
    student.load_state_dict(mean)
    return kd.item(), student(x).tolist()


def habit_meta_learning(torch):
    """MAML: an optimizer step through an inner step."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    meta = torch.optim.SGD([w], lr=0.1)
    inner = (w.pow(3)).sum()
    (grad,) = torch.autograd.grad(inner, w, create_graph=True)
    fast = w - 0.1 * grad
    outer = (fast**2).sum()
    meta.zero_grad()
    outer.backward()
    meta.step()
    return w.tolist()


def habit_graphs_and_pairs(torch):
    """A graph convolution, word embeddings with negative samples, and a triplet loss."""
    nn, F = torch.nn, torch.nn.functional
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]], dtype=torch.long)
    src, dst = edges
    x = waves(torch, 3, 4)
    messages = torch.zeros_like(x).index_add_(0, dst, x[src])
    degree = torch.zeros(3).scatter_add_(0, dst, torch.ones(edges.size(1))).clamp(min=1)
    h = F.relu(messages / degree.unsqueeze(-1))
    table = settle(torch, nn.Embedding(6, 4))
    center, context = table(torch.arange(2)), table(torch.arange(2) + 2)
    negatives = table(torch.arange(4).view(2, 2))
    score = F.logsigmoid((center * context).sum(1)) + F.logsigmoid(
        -torch.bmm(negatives, center.unsqueeze(2)).squeeze(2)
    ).sum(1)
    triplet = nn.TripletMarginLoss(margin=1.0, p=2)(x, x + 0.1, x.flip(0))
    return h.tolist(), (-score.mean()).item(), triplet.item(), torch.cdist(x, x).tolist()
