impl Tensor {
    /// -x
    #[track_caller]
    pub fn neg(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(11), &operands, smallvec![])
    }

    /// |x|; the length of a complex number
    #[track_caller]
    pub fn abs(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(12), &operands, smallvec![])
    }

    /// -1, 0 or 1
    #[track_caller]
    pub fn sign(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(13), &operands, smallvec![])
    }

    /// e to the x
    #[track_caller]
    pub fn exp(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(14), &operands, smallvec![])
    }

    /// natural logarithm
    #[track_caller]
    pub fn log(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(15), &operands, smallvec![])
    }

    /// log(1 + x), exact near 0
    #[track_caller]
    pub fn log1p(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(16), &operands, smallvec![])
    }

    /// exp(x) - 1, exact near 0
    #[track_caller]
    pub fn expm1(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(17), &operands, smallvec![])
    }

    /// square root
    #[track_caller]
    pub fn sqrt(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(18), &operands, smallvec![])
    }

    /// 1 / sqrt(x)
    #[track_caller]
    pub fn rsqrt(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(19), &operands, smallvec![])
    }

    /// sine of radians
    #[track_caller]
    pub fn sin(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(20), &operands, smallvec![])
    }

    /// cosine of radians
    #[track_caller]
    pub fn cos(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(21), &operands, smallvec![])
    }

    /// error function
    #[track_caller]
    pub fn erf(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(22), &operands, smallvec![])
    }

    /// 1 / (1 + exp(-x))
    #[track_caller]
    pub fn sigmoid(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(23), &operands, smallvec![])
    }

    /// hyperbolic tangent
    #[track_caller]
    pub fn tanh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(24), &operands, smallvec![])
    }

    /// max(x, 0)
    #[track_caller]
    pub fn relu(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(25), &operands, smallvec![])
    }

    /// the next whole number below
    #[track_caller]
    pub fn floor(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(26), &operands, smallvec![])
    }

    /// the next whole number above
    #[track_caller]
    pub fn ceil(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(27), &operands, smallvec![])
    }

    /// the nearest whole number, halves to even
    #[track_caller]
    pub fn round(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(28), &operands, smallvec![])
    }

    /// whether x is zero
    #[track_caller]
    pub fn logical_not(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(29), &operands, smallvec![])
    }

    /// every bit turned; for bool, not
    #[track_caller]
    pub fn bitwise_not(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(30), &operands, smallvec![])
    }

    /// whether x is not a number
    #[track_caller]
    pub fn isnan(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(31), &operands, smallvec![])
    }

    /// a + b; for bool, or
    #[track_caller]
    pub fn add<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(35), &operands, smallvec![])
    }

    /// a - b
    #[track_caller]
    pub fn sub<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(36), &operands, smallvec![])
    }

    /// a * b; for bool, and
    #[track_caller]
    pub fn mul<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(37), &operands, smallvec![])
    }

    /// a / b, in floats
    #[track_caller]
    pub fn div<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(38), &operands, smallvec![])
    }

    /// a / b rounded down
    #[track_caller]
    pub fn floor_divide<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(39), &operands, smallvec![])
    }

    /// a - b * floor(a / b): the sign is b's
    #[track_caller]
    pub fn remainder<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(40), &operands, smallvec![])
    }

    /// a to the b
    #[track_caller]
    pub fn pow<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(41), &operands, smallvec![])
    }

    /// the larger of a and b; NaN where either is
    #[track_caller]
    pub fn maximum<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(42), &operands, smallvec![])
    }

    /// the smaller of a and b; NaN where either is
    #[track_caller]
    pub fn minimum<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(43), &operands, smallvec![])
    }

    /// a & b
    #[track_caller]
    pub fn bitwise_and<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(44), &operands, smallvec![])
    }

    /// a | b
    #[track_caller]
    pub fn bitwise_or<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(45), &operands, smallvec![])
    }

    /// a ^ b
    #[track_caller]
    pub fn bitwise_xor<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(46), &operands, smallvec![])
    }

    /// a == b
    #[track_caller]
    pub fn eq<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(50), &operands, smallvec![])
    }

    /// a != b
    #[track_caller]
    pub fn ne<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(51), &operands, smallvec![])
    }

    /// a < b
    #[track_caller]
    pub fn lt<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(52), &operands, smallvec![])
    }

    /// a <= b
    #[track_caller]
    pub fn le<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(53), &operands, smallvec![])
    }

    /// a > b
    #[track_caller]
    pub fn gt<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(54), &operands, smallvec![])
    }

    /// a >= b
    #[track_caller]
    pub fn ge<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(55), &operands, smallvec![])
    }

    /// whether both are not zero
    #[track_caller]
    pub fn logical_and<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(56), &operands, smallvec![])
    }

    /// whether either is not zero
    #[track_caller]
    pub fn logical_or<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(57), &operands, smallvec![])
    }

    /// whether one alone is not zero
    #[track_caller]
    pub fn logical_xor<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(58), &operands, smallvec![])
    }

    /// x / |x|, and 0 at 0: the sign of a number, for complex ones the direction
    #[track_caller]
    pub fn sgn(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(177), &operands, smallvec![])
    }

    /// the sum; int64 for bool and integers
    #[track_caller]
    pub fn sum(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(65), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// the arithmetic mean of floats
    #[track_caller]
    pub fn mean(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(66), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// the product; int64 for bool and integers
    #[track_caller]
    pub fn prod(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(67), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// the largest value
    #[track_caller]
    pub fn amax(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(68), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// the smallest value
    #[track_caller]
    pub fn amin(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(69), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// where the largest value is, the first of equals
    #[track_caller]
    pub fn argmax(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(70), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// where the smallest value is, the first of equals
    #[track_caller]
    pub fn argmin(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(71), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// the variance: squared distances from the mean over (n - correction)
    #[track_caller]
    pub fn var(&self, dim: &[i64], keepdim: bool, correction: f64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(72), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim), Attribute::Float(correction)])
    }

    /// the square root of the variance
    #[track_caller]
    pub fn std(&self, dim: &[i64], keepdim: bool, correction: f64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(73), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim), Attribute::Float(correction)])
    }

    /// whether any value is not zero
    #[track_caller]
    pub fn any(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(74), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// whether all values are not zero
    #[track_caller]
    pub fn all(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(75), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// sums of all values up to each, along an axis; int64 for bool and integers
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(76), &operands, smallvec![Attribute::Int(dim)])
    }

    /// tangent of radians
    #[track_caller]
    pub fn tan(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(112), &operands, smallvec![])
    }

    /// the angle in radians whose sine is x; NaN outside of -1 to 1
    #[track_caller]
    pub fn asin(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(113), &operands, smallvec![])
    }

    /// the angle in radians whose cosine is x; NaN outside of -1 to 1
    #[track_caller]
    pub fn acos(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(114), &operands, smallvec![])
    }

    /// the angle in radians whose tangent is x
    #[track_caller]
    pub fn atan(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(115), &operands, smallvec![])
    }

    /// hyperbolic sine: (exp(x) - exp(-x)) / 2
    #[track_caller]
    pub fn sinh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(116), &operands, smallvec![])
    }

    /// hyperbolic cosine: (exp(x) + exp(-x)) / 2
    #[track_caller]
    pub fn cosh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(117), &operands, smallvec![])
    }

    /// the number whose hyperbolic sine is x
    #[track_caller]
    pub fn asinh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(118), &operands, smallvec![])
    }

    /// the number whose hyperbolic cosine is x; NaN below 1
    #[track_caller]
    pub fn acosh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(119), &operands, smallvec![])
    }

    /// the number whose hyperbolic tangent is x; NaN outside of -1 to 1
    #[track_caller]
    pub fn atanh(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(120), &operands, smallvec![])
    }

    /// logarithm to the base 2
    #[track_caller]
    pub fn log2(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(121), &operands, smallvec![])
    }

    /// logarithm to the base 10
    #[track_caller]
    pub fn log10(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(122), &operands, smallvec![])
    }

    /// 2 to the x
    #[track_caller]
    pub fn exp2(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(123), &operands, smallvec![])
    }

    /// the angle of the point (other, input) from the first axis, in radians, in its quadrant
    #[track_caller]
    pub fn atan2<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(124), &operands, smallvec![])
    }

    /// sqrt(input^2 + other^2), without overflow on the way
    #[track_caller]
    pub fn hypot<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(125), &operands, smallvec![])
    }

    /// the whole part: the next whole number towards zero
    #[track_caller]
    pub fn trunc(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(126), &operands, smallvec![])
    }

    /// whether the sign bit is set: for numbers below 0 and for -0.0
    #[track_caller]
    pub fn signbit(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(127), &operands, smallvec![])
    }

    /// what is left of input divided by other, with the sign of input
    #[track_caller]
    pub fn fmod<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(128), &operands, smallvec![])
    }

    /// |input| with the sign of other
    #[track_caller]
    pub fn copysign<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(129), &operands, smallvec![])
    }

    /// the next float after input in the direction of other
    #[track_caller]
    pub fn nextafter<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(130), &operands, smallvec![])
    }

    /// the greatest common divisor, not negative
    #[track_caller]
    pub fn gcd<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(131), &operands, smallvec![])
    }

    /// the least common multiple, not negative
    #[track_caller]
    pub fn lcm<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(132), &operands, smallvec![])
    }

    /// the bits of input moved up by other places
    #[track_caller]
    pub fn bitwise_left_shift<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(133), &operands, smallvec![])
    }

    /// the bits of input moved down by other places; the sign stays
    #[track_caller]
    pub fn bitwise_right_shift<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(134), &operands, smallvec![])
    }

    /// the larger of input and other; where one is NaN, the other
    #[track_caller]
    pub fn fmax<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(135), &operands, smallvec![])
    }

    /// the smaller of input and other; where one is NaN, the other
    #[track_caller]
    pub fn fmin<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(136), &operands, smallvec![])
    }

    /// the mantissa, from 0.5 up to 1 in size, and the exponent: mantissa * 2^exponent is input
    #[track_caller]
    pub fn frexp(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(137), &operands, smallvec![])
    }

    /// the largest of all values up to each along an axis, and where it is, of equal ones the last
    #[track_caller]
    pub fn cummax(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(142), &operands, smallvec![Attribute::Int(dim)])
    }

    /// the smallest of all values up to each along an axis, and where it is, of equal ones the last
    #[track_caller]
    pub fn cummin(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(143), &operands, smallvec![Attribute::Int(dim)])
    }

    /// values combined at an index along an axis: by their sum, product, mean, maximum or minimum, with the existing value or (where any is put) without it
    #[track_caller]
    pub fn scatter_reduce(&self, dim: i64, index: &Tensor, src: &Tensor, reduce: &str, include_self: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index), Operand::Tensor(src)];
        Tensor::apply(&self.session(), by_id(145), &operands, smallvec![Attribute::Int(dim), Attribute::Int(word("scatter_reduce", "reduce", reduce, &["sum", "prod", "mean", "amax", "amin"])?), Attribute::Bool(include_self)])
    }

    /// logarithms of the sums of the exponentials of all values up to each, along an axis
    #[track_caller]
    pub fn logcumsumexp(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(147), &operands, smallvec![Attribute::Int(dim)])
    }

    /// 1 - erf(x), exact where erf is near 1
    #[track_caller]
    pub fn erfc(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(150), &operands, smallvec![])
    }

    /// the number whose erf is x; NaN outside of -1 to 1
    #[track_caller]
    pub fn erfinv(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(149), &operands, smallvec![])
    }

    /// the logarithm of |gamma(x)|
    #[track_caller]
    pub fn lgamma(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(151), &operands, smallvec![])
    }

    /// the derivative of lgamma
    #[track_caller]
    pub fn digamma(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(152), &operands, smallvec![])
    }

    /// the modified Bessel function of the first kind of order 0
    #[track_caller]
    pub fn i0(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(157), &operands, smallvec![])
    }

    /// the lower incomplete gamma function of (input, other), as a share of gamma(input)
    #[track_caller]
    pub fn igamma<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(173), &operands, smallvec![])
    }

    /// the upper incomplete gamma function of (input, other), as a share of gamma(input)
    #[track_caller]
    pub fn igammac<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(174), &operands, smallvec![])
    }

    /// input log(other), and 0 where input is 0 unless other is NaN
    #[track_caller]
    pub fn xlogy<'a>(&self, other: impl Into<Value<'a>>) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), other.into().0];
        Tensor::apply(&self.session(), by_id(314), &operands, smallvec![])
    }

    /// the axes in another order
    #[track_caller]
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(86), &operands, smallvec![Attribute::ints(dims)])
    }

    /// the values in reverse along axes
    #[track_caller]
    pub fn flip(&self, dims: &[i64]) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(88), &operands, smallvec![Attribute::ints(dims)])
    }

    /// the values on and below a diagonal of the last two axes, zeros above
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(92), &operands, smallvec![Attribute::Int(diagonal)])
    }

    /// the values on and above a diagonal of the last two axes, zeros below
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(93), &operands, smallvec![Attribute::Int(diagonal)])
    }

    /// the values at an index along an axis: `out[i][j] = x[index[i][j]][j]` for axis 0
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index)];
        Tensor::apply(&self.session(), by_id(95), &operands, smallvec![Attribute::Int(dim)])
    }

    /// whole rows (or slices along an axis) in the order an index names
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index)];
        Tensor::apply(&self.session(), by_id(97), &operands, smallvec![Attribute::Int(dim)])
    }

    /// rows replaced at an index along an axis; of equal indices the last counts
    #[track_caller]
    pub fn index_copy(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index), Operand::Tensor(source)];
        Tensor::apply(&self.session(), by_id(99), &operands, smallvec![Attribute::Int(dim)])
    }

    /// exp(x) over its sum along an axis
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(105), &operands, smallvec![Attribute::Int(dim)])
    }

    /// the logarithm of softmax, exact where softmax is near 0
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(106), &operands, smallvec![Attribute::Int(dim)])
    }

    /// the logarithm of the sum of exp(x), over axes
    #[track_caller]
    pub fn logsumexp(&self, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(107), &operands, smallvec![Attribute::ints(dim), Attribute::Bool(keepdim)])
    }

    /// x times the normal distribution function of x, exact or in its tanh form
    #[track_caller]
    pub fn gelu(&self, approximate: &str) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(108), &operands, smallvec![Attribute::Int(word("gelu", "approximate", approximate, &["none", "tanh"])?)])
    }

    /// x sigmoid(x)
    #[track_caller]
    pub fn silu(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(109), &operands, smallvec![])
    }

    /// log(1 + exp(x)), without overflow
    #[track_caller]
    pub fn softplus(&self) -> Result<Tensor> {
        let operands = [Operand::Tensor(self)];
        Tensor::apply(&self.session(), by_id(110), &operands, smallvec![])
    }
}
