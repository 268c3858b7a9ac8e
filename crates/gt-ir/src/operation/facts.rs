//! Facts of an operation that other crates act on, stated by each declaration.

/// What a declaration states of its operation. None of it has a default.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub autocast: Autocast,
    pub bound: ErrorBound,
    pub result: ResultKind,
}

/// The facts of an operation, in the order in which declarations give them.
pub const fn facts(autocast: Autocast, bound: ErrorBound, result: ResultKind) -> Facts {
    Facts { autocast, bound, result }
}

/// The dtype that autocast casts the operands to, by PyTorch's lists for a GPU
/// (<https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference>).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Autocast {
    /// It computes in the dtype of its operands.
    Unchanged,
    /// It is fast in the lower precision: products.
    Lower,
    /// It would lose accuracy in the lower precision.
    Float32,
}

/// What a result is to its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// A function of the operands, with memory of its own.
    Computed,
    /// Elements of the first operand, whose memory it shares in PyTorch if strides allow it.
    View,
    /// A view that may have one element of its operand several times.
    RepeatedView,
    /// Random numbers, which are a function of the seeds among the operands.
    Drawn,
    /// What user code returns, which may have effects.
    UserCode,
    /// The new value of a tensor, or its old one if the step has failed.
    Committed,
}

impl ResultKind {
    /// Returns whether the result shares its operand's memory in PyTorch, if strides allow it.
    pub const fn is_view(self) -> bool {
        matches!(self, ResultKind::View | ResultKind::RepeatedView)
    }
}

/// How far two correct evaluations of an operation may be apart, from which the check of compiled
/// code computes its tolerances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorBound {
    /// It is the same in every evaluation, whatever its operands are.
    Same,
    /// A number that is rounded to the dtype.
    Rounded,
    /// Numbers at equal distances, computed from both ends.
    Spaced,
    /// Elements of these operands, unchanged.
    Moved(&'static [usize]),
    /// Elements of all operands, unchanged.
    MovedFromAll,
    /// Elements of the second or the third operand, as the first one says.
    Chosen,
    /// The operand's numbers with another sign, which loses nothing.
    Negated,
    /// Complex numbers as pairs of real ones.
    ComplexToReal,
    /// Pairs of real numbers as complex ones.
    RealToComplex,
    /// The same numbers in another dtype.
    Cast,
    /// A sum or a difference of two operands.
    Sum,
    /// A product of two operands.
    Product,
    /// The first operand, plus a product of the others.
    ProductSum,
    /// Sums of products of both operands.
    Contraction(TermCount),
    /// Sums of elements.
    Reduction(TermCount),
    /// Elements of the third operand, added to those of the first.
    ScatteredSum(TermCount),
    /// Products of elements.
    Products(TermCount),
    /// A Fourier transform; the index of the attribute that scales it.
    Fourier { scale: usize },
    /// A comparison that changes where both sides are nearly equal.
    Equality,
    /// A test for numbers that are not finite.
    Finiteness,
    /// A function that is constant between steps: exact for exact operands.
    Stepwise,
    /// An element of the operands: exact for exact operands.
    Selected,
    /// Elements in an order, and their indices. `has_ties`: equal elements may be in either order.
    Ordered { has_ties: bool },
    /// The index of the largest or smallest element.
    IndexOf { is_max: bool },
    /// A function of the bits of integers.
    Bits,
    /// A remainder; `is_exact` for exact operands.
    Remainder { is_exact: bool },
    /// It says nothing for operands that are not exact.
    Opaque,
    /// Logarithms of cumulative sums of exponentials.
    LogSum,
    /// These results have an arbitrary sign or order, as eigenvectors do; others are estimated.
    Arbitrary(&'static [u32]),
    /// A function of each element.
    Function(Accuracy),
    /// A quotient; whole if it is rounded down.
    Quotient { is_whole: bool },
    /// No rule: it is evaluated for operands that are moved at random.
    Estimated,
    /// The bound of the operations that its body consists of.
    OfBody,
}

/// How many numbers are added or multiplied for each element of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TermCount {
    /// The length of the first operand's last axis.
    LastAxis,
    /// The length of the first operand's axis that the first attribute names.
    AlongAxis,
    /// The elements of the first operand for each element of the result.
    Reduced,
    /// The elements of a filter: of the second operand's axes after the first.
    Filter,
    /// The elements of the second operand, which are indices.
    Indices,
    /// The length of the third operand's axis that the first attribute names.
    ScatteredAlongAxis,
}

/// What a function of one element loses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accuracy {
    /// The result is rounded correctly.
    Rounded,
    /// A few units, in every library.
    Units,
    /// Some times the units of a common function.
    Power,
    /// A coarse approximation.
    Coarse,
}

/// The variants, as declarations use them.
pub mod says {
    pub use super::Accuracy::{self, Coarse, Power, Units};
    pub use super::Autocast::{Float32, Lower, Unchanged};
    pub use super::ErrorBound::{
        Arbitrary, Bits, Cast, Chosen, ComplexToReal, Contraction, Equality, Estimated, Finiteness,
        Fourier, Function, IndexOf, LogSum, Moved, MovedFromAll, Negated, OfBody, Opaque, Ordered,
        Product, ProductSum, Products, Quotient, RealToComplex, Reduction, Remainder, Rounded,
        Same, ScatteredSum, Selected, Spaced, Stepwise, Sum,
    };
    pub use super::ResultKind::{Committed, Computed, Drawn, RepeatedView, UserCode, View};
    pub use super::TermCount::{AlongAxis, Filter, Indices, LastAxis, Reduced, ScatteredAlongAxis};
    pub use super::facts;
}
