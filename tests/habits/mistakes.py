"""Mistakes for which PyTorch raises an error, with words that both messages must contain."""

from habits.common import batch, classifier


def assigned_over_a_parameter(torch):
    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.zeros(2, 2)


def assigned_over_a_module(torch):
    classifier(torch).__setattr__("0", 3)


def module_before_its_beginning(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            self.fc = torch.nn.Linear(1, 1)

    Net()


def state_of_another_shape(torch):
    state = classifier(torch).state_dict()
    state["0.weight"], state["2.bias"] = torch.zeros(2, 4), torch.zeros(7)
    state["2.weihgt"] = state.pop("2.weight")
    classifier(torch).load_state_dict(state)


def backward_of_many(torch):
    torch.ones(2, requires_grad=True).mul(2).backward()


def backward_without_history(torch):
    torch.ones(1).sum().backward()


def backward_twice(torch):
    x = torch.ones(1, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def item_of_many(torch):
    torch.ones(2).item()


def condition_of_many(torch):
    if torch.ones(2) > 0:
        pass


def numpy_of_a_trained_tensor(torch):
    torch.ones(2, requires_grad=True).numpy()


def shapes_that_do_not_broadcast(torch):
    torch.ones(2, 3) + torch.ones(4)


def products_that_do_not_fit(torch):
    torch.ones(2, 3) @ torch.ones(2, 3)


def layers_that_do_not_fit(torch):
    torch.nn.Linear(3, 2)(torch.ones(1, 4))


def views_that_do_not_fit(torch):
    torch.ones(6).view(4, -1)


def axes_out_of_range(torch):
    torch.ones(2).sum(dim=3)


def places_out_of_range(torch):
    torch.ones(2)[5]


def joined_shapes(torch):
    torch.cat([torch.ones(2, 2), torch.ones(2, 3)], dim=0)


def changed_leaf(torch):
    w = torch.ones(2, requires_grad=True)
    w += 1


def trained_integers(torch):
    torch.arange(3).requires_grad_()


def copied_history(torch):
    import copy

    copy.deepcopy(torch.ones(1, requires_grad=True) * 2)


def no_parameters(torch):
    torch.optim.SGD([], lr=0.1)


def negative_rates(torch):
    torch.optim.Adam(classifier(torch).parameters(), lr=-1.0)


def a_tensor_to_optimize(torch):
    torch.optim.SGD(torch.ones(1, requires_grad=True), lr=0.1)


def results_to_optimize(torch):
    torch.optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=0.1)


def states_of_other_groups(torch):
    model = classifier(torch)
    state = torch.optim.SGD(model[0].parameters(), lr=0.1).state_dict()
    torch.optim.SGD(model.parameters(), lr=0.1).load_state_dict(state)


def forgotten_forward(torch):
    class Net(torch.nn.Module):
        pass

    Net()(1)


def unknown_arguments(torch):
    torch.nn.Linear(2, 2, biases=False)


def missing_attribute(torch):
    _ = classifier(torch).nothing


def targets_of_another_length(torch):
    x, y = batch(torch)
    torch.nn.functional.cross_entropy(x, y[:3])


def unknown_reduction(torch):
    torch.nn.functional.mse_loss(torch.ones(1), torch.ones(1), reduction="avg")


def dropout_beyond_one(torch):
    torch.nn.Dropout(1.5)


def heads_that_do_not_divide(torch):
    torch.nn.MultiheadAttention(10, 3)


def one_value_per_channel(torch):
    torch.nn.BatchNorm1d(2).train()(torch.ones(1, 2))


def groups_that_do_not_divide(torch):
    torch.nn.GroupNorm(3, 4)


def unused_inputs(torch):
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    torch.autograd.grad(x.sum(), y)


def stacked_shapes(torch):
    torch.stack([torch.ones(2), torch.ones(3)])


def unpacked_rows(torch):
    _, _ = torch.ones(3)


def length_of_a_number(torch):
    len(torch.tensor(1.0))


def loop_over_a_number(torch):
    list(torch.tensor(1.0))


def unknown_devices(torch):
    torch.device("gpu")


def wrong_key_of_a_group(torch):
    torch.optim.SGD([{"parameters": [torch.nn.Parameter(torch.ones(1))]}], lr=0.1)


def given_twice(torch):
    w = torch.nn.Parameter(torch.ones(1))
    torch.optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)


#: A pattern that both messages must match, by mistake; None if only the types are compared.
MISTAKES = {
    assigned_over_a_parameter: "cannot assign .* as parameter 'weight'",
    assigned_over_a_module: "cannot assign .* as child module '0'",
    module_before_its_beginning: "before|__init__",
    state_of_another_shape: "(?s)2.weihgt.*size mismatch for 0.weight.*for 2.bias",
    backward_of_many: "scalar|single|one element",
    backward_without_history: "require",
    backward_twice: "retain_graph",
    item_of_many: None,
    condition_of_many: "ambiguous|neither true nor false",
    numpy_of_a_trained_tensor: "detach\\(\\)",
    shapes_that_do_not_broadcast: None,
    products_that_do_not_fit: None,
    layers_that_do_not_fit: None,
    views_that_do_not_fit: None,
    axes_out_of_range: None,
    places_out_of_range: "out of (bounds|range)",
    joined_shapes: None,
    changed_leaf: "leaf",
    trained_integers: "[Ff]loat",
    copied_history: None,
    no_parameters: "empty parameter list",
    negative_rates: "-1.0",
    a_tensor_to_optimize: None,
    results_to_optimize: "leaf|non-leaf",
    states_of_other_groups: "group",
    forgotten_forward: "forward",
    unknown_arguments: "biases",
    missing_attribute: "'Sequential' object has no attribute 'nothing'",
    targets_of_another_length: None,
    unknown_reduction: "avg",
    dropout_beyond_one: "1.5",
    heads_that_do_not_divide: "divisible",
    one_value_per_channel: "more than 1 value per channel",
    groups_that_do_not_divide: "divisible",
    unused_inputs: None,
    stacked_shapes: None,
    unpacked_rows: "too many values",
    length_of_a_number: "0-d",
    loop_over_a_number: "0-d",
    unknown_devices: "gpu",
    wrong_key_of_a_group: "params",
    given_twice: "parameter group",
}
