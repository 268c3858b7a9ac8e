//! The lowering of each operation, in the order of `gt_ir::ops::ALL`.

use gt_ir::instruction::Operands;
use gt_ir::ops::{
    attention as at, bessel as be, binary as b, compare, complex as co, convolution as cv,
    create as c, data_dependent, fourier as fo, gradients, index as i, matmul as m, nn,
    normalization as no, pooling as po, random as ra, reduce as r,
};
use gt_ir::ops::{
    cumulative as cu, linalg as la, order as o, parts as p, scatter as sc, special as sp,
};
use gt_ir::ops::{shape as s, slice, ternary as t, trigonometry as trig, unary as u};
use gt_ir::{Attributes, Meta, Operand, Operation};
use gt_worker::EngineError;

use crate::kernel::ByDType;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::{
    attention, axis_rows, binary, cast, complex, convolution, create, extreme, fourier, index,
    linalg::operations as linalg, linalg::systems, masked, matmul, normalization, parts, pooling,
    random, reduce, rows, samplers, scatter, shape, softmax, ternary, unary, via_f64,
};

/// How an operation is computed.
pub enum Lowering {
    /// Elementwise, computed in the dtype of the result.
    Same(ByDType),
    /// As [`Lowering::Same`], for functions that take longer than arithmetic.
    Function(ByDType),
    /// Elementwise, computed in the dtype that the operands are promoted to: comparisons and other
    /// predicates, and abs.
    Promoted(ByDType),
    /// By a function of the operation.
    Own(Own),
    /// By a function of the operation, with several results.
    MultiOutput(MultiOutputFn),
}

/// A function that computes an operation with several results.
pub type MultiOutputFn =
    fn(&mut Threads, Operands<Tensor>, &Attributes, &[Meta]) -> Result<Vec<Tensor>, EngineError>;

/// A function that computes an operation.
pub type Own = fn(&mut Threads, Operands<Tensor>, &Attributes, Meta) -> Result<Tensor, EngineError>;

use Lowering::{Function, MultiOutput, Own as By, Promoted, Same};

/// Every operation that the engine computes itself. The others are composites, which the worker
/// expands: var, std, logsumexp.
static LOWERINGS: &[(&Operation, Lowering)] = &[
    // create
    (&c::FULL, By(create::full)),
    (&c::ARANGE, By(create::arange)),
    (&c::LINSPACE, By(create::linspace)),
    (&c::EYE, By(create::eye)),
    // random
    (&ra::RAND, By(random::rand)),
    (&ra::RANDN, By(random::randn)),
    (&ra::RANDINT, By(random::randint)),
    (&ra::POISSON, By(samplers::poisson)),
    (&ra::BINOMIAL, By(samplers::binomial)),
    // unary
    (&u::CAST, By(cast::cast)),
    (&u::NEG, Same(unary::with_complex::<unary::Neg>(unary::numbers::<unary::Neg>()))),
    (&u::ABS, Promoted(complex::with_lengths(unary::numbers::<unary::Abs>()))),
    (&u::SIGN, Same(unary::numbers::<unary::Sign>())),
    (&u::EXP, Function(unary::with_complex::<complex::Exp>(unary::floats::<unary::Exp>()))),
    (&u::LOG, Function(unary::with_complex::<complex::Log>(unary::floats::<unary::Log>()))),
    (&u::LOG1P, Function(unary::with_complex::<complex::Log1p>(unary::floats::<unary::Log1p>()))),
    (&u::EXPM1, Function(unary::with_complex::<complex::Expm1>(unary::floats::<unary::Expm1>()))),
    (&u::SQRT, Same(unary::with_complex::<complex::Sqrt>(unary::floats::<unary::Sqrt>()))),
    (&u::RSQRT, Same(unary::with_complex::<complex::Rsqrt>(unary::floats::<unary::Rsqrt>()))),
    (&u::SIN, Function(unary::with_complex::<complex::Sin>(unary::waves::<false>()))),
    (&u::COS, Function(unary::with_complex::<complex::Cos>(unary::waves::<true>()))),
    (&u::ERF, Function(unary::floats::<unary::Erf>())),
    (
        &u::SIGMOID,
        Function(unary::with_complex::<complex::Sigmoid>(unary::floats::<unary::Sigmoid>())),
    ),
    (&u::TANH, Function(unary::with_complex::<complex::Tanh>(unary::floats::<unary::Tanh>()))),
    (&u::RELU, Same(unary::numbers::<unary::Relu>())),
    (&u::FLOOR, Same(unary::roundings::<unary::Floor>())),
    (&u::CEIL, Same(unary::roundings::<unary::Ceil>())),
    (&u::ROUND, Same(unary::roundings::<unary::Round>())),
    (
        &u::LOGICAL_NOT,
        Promoted(unary::with_complex_predicates::<unary::LogicalNot>(unary::predicates::<
            unary::LogicalNot,
        >())),
    ),
    (&u::BITWISE_NOT, Same(unary::whole::<unary::BitwiseNot>())),
    (
        &u::ISNAN,
        Promoted(unary::with_complex_predicates::<unary::IsNan>(
            unary::predicates::<unary::IsNan>(),
        )),
    ),
    // binary
    (&b::ADD, Same(binary::with_complex::<binary::Add>(binary::numbers::<binary::Add>()))),
    (&b::SUB, Same(binary::with_complex::<binary::Sub>(binary::numbers::<binary::Sub>()))),
    (&b::MUL, Same(binary::with_complex::<binary::Mul>(binary::numbers::<binary::Mul>()))),
    (&b::DIV, Same(binary::with_complex::<complex::Div>(binary::floats::<binary::Div>()))),
    (&b::FLOOR_DIVIDE, By(binary::floor_divide)),
    (&b::REMAINDER, By(binary::remainder)),
    (&b::POW, By(binary::power)),
    (&b::MAXIMUM, Same(binary::numbers::<binary::Maximum>())),
    (&b::MINIMUM, Same(binary::numbers::<binary::Minimum>())),
    (&b::BITWISE_AND, Same(binary::whole::<binary::And>())),
    (&b::BITWISE_OR, Same(binary::whole::<binary::Or>())),
    (&b::BITWISE_XOR, Same(binary::whole::<binary::Xor>())),
    // compare
    (
        &compare::EQ,
        Promoted(
            binary::with_complex_predicates::<binary::Eq>(binary::comparisons::<binary::Eq>()),
        ),
    ),
    (
        &compare::NE,
        Promoted(
            binary::with_complex_predicates::<binary::Ne>(binary::comparisons::<binary::Ne>()),
        ),
    ),
    (&compare::LT, Promoted(binary::comparisons::<binary::Lt>())),
    (&compare::LE, Promoted(binary::comparisons::<binary::Le>())),
    (&compare::GT, Promoted(binary::comparisons::<binary::Gt>())),
    (&compare::GE, Promoted(binary::comparisons::<binary::Ge>())),
    (
        &compare::LOGICAL_AND,
        Promoted(binary::with_complex_predicates::<binary::LogicalAnd>(binary::comparisons::<
            binary::LogicalAnd,
        >())),
    ),
    (
        &compare::LOGICAL_OR,
        Promoted(binary::with_complex_predicates::<binary::LogicalOr>(binary::comparisons::<
            binary::LogicalOr,
        >())),
    ),
    (
        &compare::LOGICAL_XOR,
        Promoted(binary::with_complex_predicates::<binary::LogicalXor>(binary::comparisons::<
            binary::LogicalXor,
        >())),
    ),
    // ternary
    (&t::WHERE, By(ternary::choice)),
    (&t::CLAMP, Same(ternary::numbers::<ternary::Clamp>())),
    (
        &t::MUL_ADD,
        Same(ternary::with_complex::<ternary::MulAdd>(ternary::numbers::<ternary::MulAdd>())),
    ),
    // reduce
    (&r::SUM, By(reduce::sum)),
    (&r::MEAN, By(reduce::mean)),
    (&r::PROD, By(reduce::prod)),
    (&r::AMAX, By(reduce::amax)),
    (&r::AMIN, By(reduce::amin)),
    (&r::ARGMAX, By(extreme::argmax)),
    (&r::ARGMIN, By(extreme::argmin)),
    (&r::ANY, By(reduce::any)),
    (&r::ALL, By(reduce::all)),
    (&cu::CUMSUM, By(reduce::cumsum)),
    // trigonometry
    (&trig::TAN, Function(unary::with_complex::<complex::Tan>(unary::floats::<via_f64::Tan>()))),
    (&trig::ASIN, Function(unary::with_complex::<complex::Asin>(unary::floats::<via_f64::Asin>()))),
    (&trig::ACOS, Function(unary::with_complex::<complex::Acos>(unary::floats::<via_f64::Acos>()))),
    (&trig::ATAN, Function(unary::with_complex::<complex::Atan>(unary::floats::<via_f64::Atan>()))),
    (&trig::SINH, Function(unary::with_complex::<complex::Sinh>(unary::floats::<via_f64::Sinh>()))),
    (&trig::COSH, Function(unary::with_complex::<complex::Cosh>(unary::floats::<via_f64::Cosh>()))),
    (
        &trig::ASINH,
        Function(unary::with_complex::<complex::Asinh>(unary::floats::<via_f64::Asinh>())),
    ),
    (
        &trig::ACOSH,
        Function(unary::with_complex::<complex::Acosh>(unary::floats::<via_f64::Acosh>())),
    ),
    (
        &trig::ATANH,
        Function(unary::with_complex::<complex::Atanh>(unary::floats::<via_f64::Atanh>())),
    ),
    (&trig::LOG2, Function(unary::with_complex::<complex::Log2>(unary::floats::<via_f64::Log2>()))),
    (
        &trig::LOG10,
        Function(unary::with_complex::<complex::Log10>(unary::floats::<via_f64::Log10>())),
    ),
    (&trig::EXP2, Function(unary::with_complex::<complex::Exp2>(unary::floats::<via_f64::Exp2>()))),
    (&trig::ATAN2, Function(binary::floats::<via_f64::Atan2>())),
    (&trig::HYPOT, Function(binary::floats::<via_f64::Hypot>())),
    // parts
    (&p::TRUNC, Same(unary::roundings::<parts::Trunc>())),
    (&p::SIGNBIT, Promoted(unary::predicates::<parts::SignBit>())),
    (&p::FMOD, By(parts::fmod)),
    (&p::COPYSIGN, Same(binary::floats::<parts::CopySign>())),
    (&p::NEXTAFTER, Same(binary::floats::<parts::NextAfter>())),
    (&p::GCD, Same(binary::whole::<parts::Gcd>())),
    (&p::LCM, Same(binary::whole::<parts::Lcm>())),
    (&p::BITWISE_LEFT_SHIFT, Same(binary::whole::<parts::ShiftLeft>())),
    (&p::BITWISE_RIGHT_SHIFT, Same(binary::whole::<parts::ShiftRight>())),
    (&p::FMAX, Same(binary::numbers::<parts::Fmax>())),
    (&p::FMIN, Same(binary::numbers::<parts::Fmin>())),
    (&p::FREXP, MultiOutput(parts::frexp)),
    // special
    (&sp::ERFC, Function(unary::floats::<via_f64::Erfc>())),
    (&sp::ERFINV, Function(unary::floats::<via_f64::Erfinv>())),
    (&sp::LGAMMA, Function(unary::floats::<via_f64::Lgamma>())),
    (&sp::DIGAMMA, Function(unary::floats::<via_f64::Digamma>())),
    (&sp::POLYGAMMA, By(via_f64::polygamma)),
    (&sp::ERFCX, Function(unary::floats::<via_f64::Erfcx>())),
    (&sp::NDTRI, Function(unary::floats::<via_f64::Ndtri>())),
    (&sp::LOG_NDTR, Function(unary::floats::<via_f64::LogNdtr>())),
    (&be::I0, Function(unary::floats::<via_f64::I0>())),
    (&be::I0E, Function(unary::floats::<via_f64::I0e>())),
    (&be::I1, Function(unary::floats::<via_f64::I1>())),
    (&be::I1E, Function(unary::floats::<via_f64::I1e>())),
    (&be::BESSEL_J0, Function(unary::floats::<via_f64::J0>())),
    (&be::BESSEL_J1, Function(unary::floats::<via_f64::J1>())),
    (&be::BESSEL_Y0, Function(unary::floats::<via_f64::Y0>())),
    (&be::BESSEL_Y1, Function(unary::floats::<via_f64::Y1>())),
    (&be::MODIFIED_BESSEL_K0, Function(unary::floats::<via_f64::K0>())),
    (&be::MODIFIED_BESSEL_K1, Function(unary::floats::<via_f64::K1>())),
    (&be::SCALED_MODIFIED_BESSEL_K0, Function(unary::floats::<via_f64::K0e>())),
    (&be::SCALED_MODIFIED_BESSEL_K1, Function(unary::floats::<via_f64::K1e>())),
    (&be::MODIFIED_BESSEL_I0, Function(unary::floats::<via_f64::I0>())),
    (&be::MODIFIED_BESSEL_I1, Function(unary::floats::<via_f64::I1>())),
    (&be::SPHERICAL_BESSEL_J0, Function(unary::floats::<via_f64::SphericalBesselJ0>())),
    (&be::AIRY_AI, Function(unary::floats::<via_f64::AiryAi>())),
    (&sp::IGAMMA, Function(binary::floats::<via_f64::Igamma>())),
    (&sp::IGAMMAC, Function(binary::floats::<via_f64::Igammac>())),
    (&sp::ZETA, Function(binary::floats::<via_f64::Zeta>())),
    (&sp::XLOGY, Function(binary::floats::<via_f64::Xlogy>())),
    (&sp::XLOG1PY, Function(binary::floats::<via_f64::Xlog1py>())),
    (&sp::ENTR, Function(unary::floats::<via_f64::Entr>())),
    // complex
    (&co::CONJ, Same(unary::with_complex::<complex::Conj>(unary::numbers::<unary::Identity>()))),
    (&co::SGN, Same(unary::with_complex::<complex::Sgn>(unary::numbers::<unary::Sign>()))),
    (&co::VIEW_AS_REAL, By(complex::reinterpret)),
    (&co::VIEW_AS_COMPLEX, By(complex::reinterpret)),
    // fourier
    (&fo::FFT_C2C, By(fourier::c2c)),
    (&fo::FFT_R2C, By(fourier::r2c)),
    (&fo::FFT_C2R, By(fourier::c2r)),
    // order
    (&o::SORT, MultiOutput(axis_rows::sort)),
    (&o::TOPK, MultiOutput(axis_rows::topk)),
    (&o::MAX_ALONG, MultiOutput(axis_rows::max_along)),
    (&o::MIN_ALONG, MultiOutput(axis_rows::min_along)),
    (&o::CUMMAX, MultiOutput(axis_rows::cummax)),
    (&o::CUMMIN, MultiOutput(axis_rows::cummin)),
    // scatter
    (&sc::SCATTER, By(scatter::scatter)),
    (&sc::SCATTER_REDUCE, By(scatter::scatter_reduce)),
    // cumulative
    (&cu::CUMPROD, By(axis_rows::cumprod)),
    (&cu::LOGCUMSUMEXP, By(axis_rows::logcumsumexp)),
    // matmul
    (&m::MATMUL, By(matmul::matmul)),
    // linalg
    (&la::CHOLESKY, MultiOutput(linalg::cholesky)),
    (&la::LU, MultiOutput(linalg::lu)),
    (&la::QR, MultiOutput(linalg::qr)),
    (&la::GEQRF, MultiOutput(linalg::geqrf)),
    (&la::SVD, MultiOutput(linalg::svd)),
    (&la::EIGH, MultiOutput(linalg::eigh)),
    (&la::EIG, MultiOutput(linalg::eig)),
    (&la::SOLVE, MultiOutput(systems::solve)),
    (&la::LDL_FACTOR, MultiOutput(linalg::ldl_factor)),
    (&la::LU_ORDER, By(systems::lu_order)),
    (&la::SOLVE_TRIANGULAR, By(systems::solve_triangular)),
    (&la::LDL_SOLVE, By(systems::ldl_solve)),
    // convolution
    (&cv::CONV_GENERAL, By(convolution::operation)),
    (&po::MAX_POOL, MultiOutput(pooling::max_pool)),
    // attention
    (&at::ATTENTION, MultiOutput(attention::attention)),
    (&at::ATTENTION_BACKWARD, MultiOutput(attention::attention_backward)),
    // shape
    (&s::RESHAPE, By(shape::reshape)),
    (&s::PERMUTE, By(shape::permute)),
    (&s::EXPAND, By(shape::expand)),
    (&s::FLIP, By(shape::flip)),
    (&slice::SLICE, By(shape::slice)),
    (&slice::SLICE_ASSIGN, By(shape::slice_assign)),
    (&s::CAT, By(shape::cat)),
    (&s::TRIL, By(shape::tril)),
    (&s::TRIU, By(shape::triu)),
    // index
    (&i::GATHER, By(index::gather)),
    (&i::SCATTER_ADD, By(scatter::scatter_add)),
    (&i::INDEX_SELECT, By(rows::index_select)),
    (&i::INDEX_ADD, By(rows::index_add)),
    (&i::INDEX_COPY, By(rows::index_copy)),
    (&i::WRAP_INDEX, By(index::wrap_index)),
    // data_dependent
    (&data_dependent::NONZERO, By(masked::nonzero)),
    (&data_dependent::MASKED_ROWS, By(masked::masked_rows)),
    (&data_dependent::MASKED_ROWS_SCATTER, By(masked::masked_rows_scatter)),
    // nn
    (&nn::SOFTMAX, By(softmax::softmax)),
    (&nn::LOG_SOFTMAX, By(softmax::log_softmax)),
    (&gradients::SOFTMAX_BACKWARD, By(softmax::softmax_backward)),
    (&gradients::LOG_SOFTMAX_BACKWARD, By(softmax::log_softmax_backward)),
    (&nn::GELU, By(unary::gelu)),
    (&nn::SILU, Function(unary::with_complex::<complex::Silu>(unary::floats::<unary::Silu>()))),
    (&nn::SOFTPLUS, Function(unary::floats::<unary::Softplus>())),
    // normalization
    (&no::LAYER_NORM, By(normalization::layer_norm)),
    (&no::LAYER_NORM_BACKWARD, By(normalization::layer_norm_backward)),
    (&no::LAYER_NORM_WEIGHT_BACKWARD, By(normalization::layer_norm_weight_backward)),
];

/// [`LOWERINGS`], indexed by operation id.
static BY_ID: [Option<&'static Lowering>; gt_ir::ops::MOST] = {
    let mut table = [None; gt_ir::ops::MOST];
    let mut index = 0;
    while index < LOWERINGS.len() {
        let (operation, lowering) = &LOWERINGS[index];
        table[operation.id as usize] = Some(lowering);
        index += 1;
    }
    table
};

/// Returns how an operation is computed, if the engine computes it itself.
#[inline]
pub fn lowering(operation: &Operation) -> Option<&'static Lowering> {
    BY_ID.get(usize::from(operation.id)).copied().flatten()
}

/// Takes the tensor at `index` out of the operands, so that it may be the last reference.
///
/// # Errors
/// The operand is not a tensor.
pub fn tensor(operands: &mut Operands<Tensor>, index: usize) -> Result<Tensor, EngineError> {
    let placeholder = Operand::Scalar(gt_ir::Scalar::Bool(false));
    match operands.get_mut(index).map(|operand| std::mem::replace(operand, placeholder)) {
        Some(Operand::Tensor(tensor)) => Ok(tensor),
        _ => Err(EngineError::Other(format!("operand {index} is not a tensor"))),
    }
}
