"""The pages of the API reference that list many names, and which modules' names each has.

Words in small letters are modules; the others are families of primitives.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of one namespace: its sections, each with the modules and families that it covers."""

    title: str
    namespace: str
    sections: dict[str, str]


PAGES = {
    "functions/creation": Page(
        "Creating tensors",
        "gt",
        {"Values": "create likes sparse Create", "Random numbers": "random"},
    ),
    "functions/shapes": Page(
        "Shapes and joining",
        "gt",
        {
            "Shapes": "axes copies layout shape strided Reshape",
            "Joining, splitting and repeating": "join repeat split Concat",
        },
    ),
    "functions/indexing": Page(
        "Indexing and properties",
        "gt",
        {
            "Indexing": "diagonal index index_write regions scatter Index Slice",
            "Properties and dtypes": "convert dtypes memory",
        },
    ),
    "functions/math": Page(
        "Elementwise mathematics",
        "gt",
        {
            "Arithmetic and logic": "elementwise in_place ternary Binary Ternary",
            "Complex numbers": "complex",
        },
    ),
    "functions/elementary": Page(
        "Elementary and special functions",
        "gt",
        {"Functions of elements": "math rounding special Unary"},
    ),
    "functions/reductions": Page(
        "Reductions, sorting and comparison",
        "gt",
        {
            "Reductions": "calculus norms reduce spread Reduce",
            "Sorting, searching and counting": "histograms order searching unique",
            "Comparison": "compare",
        },
    ),
    "functions/linear": Page(
        "Products and matrices",
        "gt",
        {
            "Products": "distance einsum matmul matmul_add matrices Matmul",
            "Factorizations and solvers": (
                "linalg_determinants linalg_lstsq linalg_lu linalg_old linalg_reflections "
                "linalg_solve matrix_exp"
            ),
        },
    ),
    "functions/layers": Page(
        "Layers and windows",
        "gt",
        {
            "Layers": (
                "adaptive_pooling convolutions functional_names grids native pixels pooling "
                "pooling_gradient resampling Convolution"
            ),
            "Windows and spectra": "old_windows spectrogram",
        },
    ),
    "functional/layers": Page(
        "nn.functional: layers",
        "gt.nn.functional",
        {
            "Linear layers, embeddings and attention": (
                "attention embeddings linears matmul multi_head"
            ),
            "Convolution": "convolutions folding",
            "Normalization and distance": "distance normalization norms",
            "Dropout": "dropouts",
        },
    ),
    "functional/images": Page(
        "nn.functional: pooling and images",
        "gt.nn.functional",
        {
            "Pooling": "adaptive_pooling pooling unpooling",
            "Images and padding": "grids padding pixels resampling",
        },
    ),
    "functional/losses": Page(
        "nn.functional: activations and losses",
        "gt.nn.functional",
        {
            "Activations": "activation elementwise smooth Unary",
            "Losses": "binary classification ctc loss margin",
        },
    ),
    "nn/module": Page(
        "Modules, containers and parameters",
        "gt.nn",
        {
            "Modules": "module parallel",
            "Containers": "containers data_parallel parameter_containers",
            "Parameters": "lazy parameter",
        },
    ),
    "nn/layers": Page(
        "Linear layers and convolutions",
        "gt.nn",
        {
            "Linear layers, embeddings and dropout": "dropout linear sparse",
            "Convolution": "convolution lazy_convolution transposed_convolution",
        },
    ),
    "nn/pooling": Page(
        "Pooling, padding and images",
        "gt.nn",
        {
            "Pooling": "adaptive_pooling pooling",
            "Padding and shapes": "flatten folding padding pixels upsampling",
        },
    ),
    "nn/activations": Page(
        "Activations and normalization",
        "gt.nn",
        {
            "Activations": "activation adaptive_softmax smooth_activation softmax",
            "Normalization": "batch_normalization instance_normalization normalization",
        },
    ),
    "nn/sequences": Page(
        "Recurrent layers and transformers",
        "gt.nn",
        {
            "Recurrent layers": "recurrent recurrent_cells",
            "Attention and transformers": "attention transformer transformer_layers",
        },
    ),
    "nn/losses": Page(
        "Losses and distances",
        "gt.nn",
        {"Losses": "classification_loss loss margin_loss", "Distances": "distance"},
    ),
    "distributions/continuous": Page(
        "Continuous distributions",
        "gt.distributions",
        {
            "Distributions": (
                "beta cauchy chi2 continuous_bernoulli exponential fishersnedecor gamma "
                "generalized_pareto gumbel half_cauchy half_normal inverse_gamma kumaraswamy "
                "laplace log_normal normal pareto studentT uniform von_mises weibull"
            ),
        },
    ),
    "distributions/discrete": Page(
        "Discrete distributions",
        "gt.distributions",
        {
            "Base classes": (
                "distribution exp_family independent mixture_same_family transformed_distribution"
            ),
            "Discrete": (
                "bernoulli binomial categorical geometric multinomial negative_binomial "
                "one_hot_categorical poisson"
            ),
        },
    ),
    "distributions/multivariate": Page(
        "Multivariate and relaxed distributions",
        "gt.distributions",
        {
            "Distributions": (
                "dirichlet lkj_cholesky logistic_normal lowrank_multivariate_normal "
                "multivariate_normal relaxed_bernoulli relaxed_categorical wishart"
            ),
        },
    ),
    "distributions/transforms": Page(
        "Transforms and divergences",
        "gt.distributions",
        {
            "Transforms": "affine compose elementwise join matrices simplex transform",
            "Divergences and constraints": "constraint_registry registry",
        },
    ),
}
