"""Right answers written differently: loops, einsum, other formulas, float32 results, lists accepted as they are."""
