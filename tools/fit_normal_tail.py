"""Print the polynomial coefficients of ffn/normal.py, computed with 50 digits by mpmath.

    python tools/fit_normal_tail.py

The probability Q(d) that a standard normal variable exceeds d >= 0 falls like exp(-d^2 / 2). With
t = 4 / (4 + d) the function exp(d^2 / 2) Q(d) / t is smooth on 0 < t <= 1, so a short Chebyshev series
reaches full precision. It is printed in powers of t, highest first, for Horner's rule.
"""

import mpmath as mp

SCALE = 4
DEGREES = {"FLOAT64": 25, "FLOAT32": 11}


def smooth_part(t: mp.mpf) -> mp.mpf:
    """exp(d^2 / 2) Q(d) / t, where d = SCALE (1 - t) / t."""
    d = SCALE * (1 - t) / t
    if d > 300:
        series = sum((-1) ** k * mp.fac2(2 * k - 1) / d ** (2 * k) for k in range(12))
        return series / (d * mp.sqrt(2 * mp.pi)) / t
    return mp.exp(d * d / 2) * mp.erfc(d / mp.sqrt(2)) / 2 / t


def powers_of_t(degree: int) -> list[mp.mpf]:
    """Coefficients of the Chebyshev fit of this degree on [0, 1], in powers of t, highest first."""
    nodes = degree + 60
    angles = [mp.pi * (i + mp.mpf(1) / 2) / nodes for i in range(nodes)]
    values = [smooth_part((1 + mp.cos(a)) / 2) for a in angles]
    series = [
        (2 if k else 1) * sum(v * mp.cos(k * a) for v, a in zip(values, angles, strict=True)) / nodes
        for k in range(degree + 1)
    ]
    powers = [mp.mpf(0)] * (degree + 1)
    for k, c in enumerate(series):
        for j, b in enumerate(mp.taylor(lambda t, k=k: mp.chebyt(k, 2 * t - 1), 0, k)):
            powers[j] += c * b
    return powers[::-1]


def main() -> None:
    """Print both tuples as Python source."""
    mp.mp.dps = 50
    for name, degree in DEGREES.items():
        digits = 18 if name == "FLOAT64" else 10
        print(f"_{name} = (")
        for c in powers_of_t(degree):
            print(f"    {mp.nstr(c, digits)},")
        print(")")


if __name__ == "__main__":
    main()
