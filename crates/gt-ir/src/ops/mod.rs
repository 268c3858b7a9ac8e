//! The instruction set: the definitions of all operations.
//!
//! To add one: define it in the file of its family, list it in [`ALL`] with the next free id,
//! and give it a lowering in each engine (or a composite body).

pub mod attention;
pub mod bessel;
pub mod binary;
pub mod build;
pub mod commit;
pub mod compare;
pub mod complex;
pub mod convolution;
pub mod create;
pub mod cumulative;
pub mod custom;
pub mod data_dependent;
pub mod fourier;
pub mod further;
pub mod gradients;
pub mod index;
pub mod infer;
pub mod linalg;
pub mod matmul;
pub mod nn;
pub mod normalization;
pub mod optim;
pub mod order;
pub mod parts;
pub mod pooling;
pub mod random;
pub mod reduce;
pub mod sample;
pub mod scatter;
pub mod shape;
pub mod slice;
pub mod special;
pub mod ternary;
pub mod trigonometry;
pub mod unary;
pub mod window;

use crate::operation::Operation;

/// Every operation. Ids are part of the wire format and are never reused.
pub const ALL: &[&Operation] = &[
    // create
    &create::FULL,
    &create::ARANGE,
    &create::LINSPACE,
    &create::EYE,
    // random
    &random::RAND,
    &random::RANDN,
    &random::RANDINT,
    &random::POISSON,
    &random::BINOMIAL,
    // unary
    &unary::CAST,
    &unary::NEG,
    &unary::ABS,
    &unary::SIGN,
    &unary::EXP,
    &unary::LOG,
    &unary::LOG1P,
    &unary::EXPM1,
    &unary::SQRT,
    &unary::RSQRT,
    &unary::SIN,
    &unary::COS,
    &unary::ERF,
    &unary::SIGMOID,
    &unary::TANH,
    &unary::RELU,
    &unary::FLOOR,
    &unary::CEIL,
    &unary::ROUND,
    &unary::LOGICAL_NOT,
    &unary::BITWISE_NOT,
    &unary::ISNAN,
    // binary
    &binary::ADD,
    &binary::SUB,
    &binary::MUL,
    &binary::DIV,
    &binary::FLOOR_DIVIDE,
    &binary::REMAINDER,
    &binary::POW,
    &binary::MAXIMUM,
    &binary::MINIMUM,
    &binary::BITWISE_AND,
    &binary::BITWISE_OR,
    &binary::BITWISE_XOR,
    // compare
    &compare::EQ,
    &compare::NE,
    &compare::LT,
    &compare::LE,
    &compare::GT,
    &compare::GE,
    &compare::LOGICAL_AND,
    &compare::LOGICAL_OR,
    &compare::LOGICAL_XOR,
    // complex
    &complex::CONJ,
    &complex::SGN,
    &complex::VIEW_AS_REAL,
    &complex::VIEW_AS_COMPLEX,
    // ternary
    &ternary::WHERE,
    &ternary::CLAMP,
    &ternary::MUL_ADD,
    // reduce
    &reduce::SUM,
    &reduce::MEAN,
    &reduce::PROD,
    &reduce::AMAX,
    &reduce::AMIN,
    &reduce::ARGMAX,
    &reduce::ARGMIN,
    &reduce::VAR,
    &reduce::STD,
    &reduce::ANY,
    &reduce::ALL,
    &cumulative::CUMSUM,
    // trigonometry
    &trigonometry::TAN,
    &trigonometry::ASIN,
    &trigonometry::ACOS,
    &trigonometry::ATAN,
    &trigonometry::SINH,
    &trigonometry::COSH,
    &trigonometry::ASINH,
    &trigonometry::ACOSH,
    &trigonometry::ATANH,
    &trigonometry::LOG2,
    &trigonometry::LOG10,
    &trigonometry::EXP2,
    &trigonometry::ATAN2,
    &trigonometry::HYPOT,
    // parts
    &parts::TRUNC,
    &parts::SIGNBIT,
    &parts::FMOD,
    &parts::COPYSIGN,
    &parts::NEXTAFTER,
    &parts::GCD,
    &parts::LCM,
    &parts::BITWISE_LEFT_SHIFT,
    &parts::BITWISE_RIGHT_SHIFT,
    &parts::FMAX,
    &parts::FMIN,
    &parts::FREXP,
    // order
    &order::SORT,
    &order::TOPK,
    &order::MAX_ALONG,
    &order::MIN_ALONG,
    &order::CUMMAX,
    &order::CUMMIN,
    // scatter
    &scatter::SCATTER,
    &scatter::SCATTER_REDUCE,
    // cumulative
    &cumulative::CUMPROD,
    &cumulative::LOGCUMSUMEXP,
    // special
    &special::ERFC,
    &special::ERFINV,
    &special::LGAMMA,
    &special::DIGAMMA,
    &special::POLYGAMMA,
    &special::ERFCX,
    &special::NDTRI,
    &special::LOG_NDTR,
    &bessel::I0,
    &bessel::I0E,
    &bessel::I1,
    &bessel::I1E,
    &bessel::BESSEL_J0,
    &bessel::BESSEL_J1,
    &bessel::BESSEL_Y0,
    &bessel::BESSEL_Y1,
    &bessel::MODIFIED_BESSEL_K0,
    &bessel::MODIFIED_BESSEL_K1,
    &bessel::SCALED_MODIFIED_BESSEL_K0,
    &bessel::SCALED_MODIFIED_BESSEL_K1,
    &bessel::MODIFIED_BESSEL_I0,
    &bessel::MODIFIED_BESSEL_I1,
    &bessel::SPHERICAL_BESSEL_J0,
    &bessel::AIRY_AI,
    &special::IGAMMA,
    &special::IGAMMAC,
    &special::ZETA,
    &special::XLOGY,
    &special::XLOG1PY,
    &special::ENTR,
    // fourier
    &fourier::FFT_C2C,
    &fourier::FFT_R2C,
    &fourier::FFT_C2R,
    // further
    &further::FURTHER,
    // matmul
    &matmul::MATMUL,
    // linalg
    &linalg::CHOLESKY,
    &linalg::LU,
    &linalg::LU_ORDER,
    &linalg::QR,
    &linalg::GEQRF,
    &linalg::SVD,
    &linalg::EIGH,
    &linalg::EIG,
    &linalg::SOLVE,
    &linalg::SOLVE_TRIANGULAR,
    &linalg::LDL_FACTOR,
    &linalg::LDL_SOLVE,
    // convolution
    &convolution::CONV_GENERAL,
    &pooling::MAX_POOL,
    // attention
    &attention::ATTENTION,
    &attention::ATTENTION_BACKWARD,
    // shape
    &shape::RESHAPE,
    &shape::PERMUTE,
    &shape::EXPAND,
    &shape::PLACE,
    &shape::FLIP,
    &slice::SLICE,
    &slice::SLICE_ASSIGN,
    &shape::CAT,
    &shape::TRIL,
    &shape::TRIU,
    // index
    &index::GATHER,
    &index::SCATTER_ADD,
    &index::INDEX_SELECT,
    &index::INDEX_ADD,
    &index::INDEX_COPY,
    &index::WRAP_INDEX,
    // data_dependent
    &data_dependent::NONZERO,
    &data_dependent::MASKED_ROWS,
    &data_dependent::MASKED_ROWS_SCATTER,
    // nn
    &nn::SOFTMAX,
    &nn::LOG_SOFTMAX,
    &nn::LOGSUMEXP,
    &nn::GELU,
    &nn::SILU,
    &nn::SOFTPLUS,
    // optim
    &optim::RUNNING_MEAN,
    &optim::RUNNING_SQUARE,
    &optim::ADAM_STEP,
    &commit::COMMIT,
    // normalization
    &normalization::LAYER_NORM,
    &normalization::LAYER_NORM_BACKWARD,
    &normalization::LAYER_NORM_WEIGHT_BACKWARD,
    // gradients
    &gradients::WEIGHT_BACKWARD,
    &gradients::SOFTMAX_BACKWARD,
    &gradients::LOG_SOFTMAX_BACKWARD,
    &gradients::GELU_BACKWARD,
    // custom
    &custom::CUSTOM,
];

/// Ids are below this.
pub const MOST: usize = 512;

/// [`ALL`] by id.
pub(crate) static BY_ID: [Option<&'static Operation>; MOST] = {
    let mut table: [Option<&'static Operation>; MOST] = [None; MOST];
    let mut index = 0;
    while index < ALL.len() {
        let id = ALL[index].id as usize;
        assert!(table[id].is_none(), "two operations share an id");
        table[id] = Some(ALL[index]);
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_documented() {
        let mut names: Vec<_> = ALL.iter().map(|operation| operation.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|operation| !operation.doc.is_empty()));
    }

    #[test]
    fn error_bounds_fit_their_operations() {
        use crate::operation::{Body, ErrorBound, Family};
        for operation in ALL {
            let is_composite = matches!(operation.body, Body::Composite(_));
            let bound = operation.facts.bound;
            assert_eq!(bound == ErrorBound::OfBody, is_composite, "{operation:?}");
            let is_elementwise =
                matches!(operation.family, Family::Unary | Family::Binary | Family::Ternary);
            if let ErrorBound::Function(_) | ErrorBound::Quotient { .. } = bound {
                assert!(is_elementwise && operation.further.is_none(), "{operation:?}");
            }
        }
    }

    #[test]
    fn every_operation_has_samples_that_it_accepts() {
        for operation in ALL {
            let samples = (operation.samples)();
            assert!(!samples.is_empty(), "{operation:?} has no samples");
            for sample in samples {
                let metas = sample::metas(&sample);
                operation
                    .check(&metas, &sample.attributes)
                    .unwrap_or_else(|error| panic!("{operation:?} {sample:?}: {error}"));
            }
        }
    }
}
