//! Compares the outputs of compiled code with those of the plan's operations run one by one.
//!
//! Compilers may add in another order, contract products and sums, keep 16-bit floats as float32 in
//! between, and use other approximations of functions. So outputs that are not equal bit for bit are
//! compared element by element with a bound, which is found by a running error analysis (Higham,
//! Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.3): the plan is run once
//! more operation by operation, and for each value the engine computes, in float64, how far two
//! honest evaluations may be apart there.
//!
//! - An operation that is rounded adds `2 u |result|`, with the unit roundoff u of its dtype; a
//!   function some units more.
//! - A sum of n terms adds `2 n u sum|x|`: Higham's gamma_n for both evaluations (sections 3.1 and
//!   4.2). From 1024 terms on n is `32 sqrt(n)`: roundings are independent there (Higham and Mary,
//!   A New Approach to Probabilistic Rounding Error Analysis, 2019), and a sum in order of equal
//!   numbers has this as a margin. Products of matrices and convolutions likewise, with `|a| @ |b|`.
//!   16-bit floats are added as float32, and rounded once.
//! - What the operands may be apart is carried on: by the operation itself where it moves or adds
//!   numbers, by `da |b| + |a| db` for products, and else by evaluating the operation at the ends
//!   of its operands' bounds ([`corners`]). Composites are walked through. What has no rule, as a
//!   factorization, is evaluated for operands moved at random ([`corners::perturbed`]): an estimate.
//! - Where a mask, an index or a rounded number depends on floats, it may differ only where it could
//!   be otherwise within these bounds; what depends on such an element may be anything. An output
//!   that is an index is compared by the values that both choose ([`compare::Ties`]).
//!
//! Integers, bools and what is only moved are exact; an infinity or NaN has to stay where it is. The
//! sign of a zero may be another. Where an engine says that it is exact, bits are compared.
//!
//! - [`analysis`]: the error analysis of a plan; [`eager`]: operations that run as they are emitted.
//! - [`terms`]: the terms of bounds; [`rules`]: a rule for each operation, from [`carried`],
//!   [`corners`] and, for composites, [`composite`].
//! - [`compare`]: the comparison itself; [`crate::mismatch`]: the report of a difference.
//! - [`operands`]: a use of an operation.

mod analysis;
mod carried;
mod compare;
mod composite;
mod corners;
mod eager;
mod operands;
mod rules;
mod terms;

pub use analysis::allowed;
pub use compare::{Allowed, difference};
