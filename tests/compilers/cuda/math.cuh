// The CUDA math library, function by function: row k of `out` is function k of the inputs. T is float or double.
// The wrappers below give both types the names without suffix, so that one list serves both.

#define ONE(x) out[(row++) * n + i] = (T)(x);

template <class T>
__device__ void one_argument(const T* x, const T* y, T* out, int n, int i) {
    T a = x[i], b = y[i];
    int row = 0;
    ONE(acos(a)) ONE(acosh(b)) ONE(asin(a)) ONE(asinh(a)) ONE(atan(a)) ONE(atanh(a)) ONE(cbrt(a)) ONE(cos(a))
    ONE(cosh(a)) ONE(cospi(a)) ONE(erf(a)) ONE(erfc(a)) ONE(exp(a)) ONE(exp10(a)) ONE(exp2(a)) ONE(expm1(a))
    ONE(log(b)) ONE(log10(b)) ONE(log1p(b)) ONE(log2(b)) ONE(sin(a)) ONE(sinh(a)) ONE(sinpi(a)) ONE(tan(a))
    ONE(tanh(a)) ONE(lgamma(b)) ONE(tgamma(b)) ONE(sqrt(b)) ONE(rsqrt(b)) ONE(rcbrt(b)) ONE(j0(b)) ONE(j1(b))
    ONE(y0(b)) ONE(y1(b)) ONE(erfinv(a)) ONE(erfcinv(fabs(a))) ONE(normcdf(a)) ONE(normcdfinv(fabs(a)))
    ONE(erfcx(b)) ONE(cyl_bessel_i0(a)) ONE(cyl_bessel_i1(a)) ONE(jn(3, b)) ONE(yn(2, b))
}

template <class T>
__device__ void exact(const T* x, const T* y, T* out, int n, int i) {
    T a = x[i], b = y[i];
    int row = 0;
    T whole;
    int e, q;
    ONE(ceil(a)) ONE(floor(a)) ONE(trunc(a)) ONE(rint(a)) ONE(nearbyint(a)) ONE(round(a)) ONE(fabs(a))
    ONE(copysign(a, b)) ONE(fdim(a, b)) ONE(fmax(a, b)) ONE(fmin(a, b)) ONE(fmod(a, b)) ONE(remainder(a, b))
    ONE(nextafter(a, b)) ONE(ldexp(a, 3)) ONE(scalbn(a, -5)) ONE(frexp(a, &e)) ONE(e) ONE(modf(a, &whole)) ONE(whole)
    ONE(logb(a)) ONE(ilogb(a)) ONE(remquo(a, b, &q)) ONE(q & 7) ONE(lrint(a)) ONE(llrint(a)) ONE(lround(a))
    ONE(llround(a)) ONE(isfinite(a)) ONE(isinf(a)) ONE(isnan(a)) ONE(signbit(a)) ONE(fma(a, b, a)) ONE(a / b)
}

template <class T>
__device__ void two_arguments(const T* x, const T* y, T* out, int n, int i) {
    T a = x[i], b = y[i], s, c;
    int row = 0;
    ONE(atan2(a, b)) ONE(hypot(a, b)) ONE(rhypot(a, b)) ONE(pow(b, a)) ONE(norm3d(a, b, a)) ONE(norm4d(a, b, a, b))
    ONE(rnorm3d(a, b, a)) ONE(rnorm4d(a, b, a, b)) ONE(norm(1, &a)) ONE(rnorm(1, &b))
    sincos(a, &s, &c);
    ONE(s) ONE(c)
    sincospi(a, &s, &c);
    ONE(s) ONE(c)
}
