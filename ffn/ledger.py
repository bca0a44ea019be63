"""The ledger: parameters, bytes, floating-point operations and the memory budget, in whole numbers.

Widths are counts of features, sizes are bytes, and a multiplication with its addition is two operations.
"""

from dataclasses import dataclass

__all__ = [
    "BYTES_PER_GIBIBYTE",
    "BYTES_PER_MEBIBYTE",
    "BudgetInput",
    "MemoryBudget",
    "attention_parameters",
    "encoder_parameters",
    "flops_per_token",
    "gated_parameters",
    "gated_width_at_parity",
    "gibibytes",
    "llama_parameters",
    "mebibytes",
    "memory_budget",
    "plain_parameters",
]

BYTES_PER_MEBIBYTE = 2**20
BYTES_PER_GIBIBYTE = 2**30


def _require_positive(**counts: float) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{name} is {count}; expected a number that is not negative.")


def plain_parameters(d_model: int, d_ff: int, *, biases: bool = True) -> int:
    """Learned parameters of a plain block: d m + m + m d + d, or 2 d m without biases.

    Source: the mechanism page's P = dm + m + md + d; published ids ex6.sublayer and mech.core_params.
    """
    _require_positive(d_model=d_model, d_ff=d_ff)
    return 2 * d_model * d_ff + (d_ff + d_model if biases else 0)


def gated_parameters(d_model: int, d_ff: int) -> int:
    """Learned parameters of a bias-free gated block: 3 d d_ff. Published ids: mech.swiglu_params_formula."""
    _require_positive(d_model=d_model, d_ff=d_ff)
    return 3 * d_model * d_ff


def gated_width_at_parity(d_ff: int, *, multiple_of: int = 1) -> int:
    """Width of a gated block with about the parameters of a plain one: two thirds of d_ff, as a whole number.

    The fraction is dropped, then ``multiple_of`` rounds up to a multiple, as LLaMA does with 256 (4 * 4096 gives
    11008).
    Source: Shazeer (2020), section 3; Touvron et al. (2023).
    """
    _require_positive(d_ff=d_ff)
    if multiple_of < 1:
        raise ValueError(f"multiple_of is {multiple_of}; expected 1 or more.")
    two_thirds = 2 * d_ff // 3
    return -(-two_thirds // multiple_of) * multiple_of


def attention_parameters(d_model: int, *, biases: bool = True, d_kv: int | None = None) -> int:
    """Learned parameters of self-attention: query, key, value and output projections.

    ``d_kv`` is the width of keys and values together over all their heads, d_model where it is None; grouped
    queries make it smaller.
    """
    kv = d_model if d_kv is None else d_kv
    _require_positive(d_model=d_model, d_kv=kv)
    return 2 * d_model * d_model + 2 * d_model * kv + (2 * d_model + 2 * kv if biases else 0)


def encoder_parameters(
    d_model: int = 768, d_ff: int = 3072, layers: int = 12, vocabulary: int = 30_522, positions: int = 512
) -> int:
    """Learned parameters of a BERT encoder with its pooler; the defaults are BERT-base, 109,482,240.

    Embeddings of tokens, positions and two segments with one layer normalization; each layer has attention, a
    plain block and two layer normalizations. Source: Devlin et al. (2018); published id ex6.bert_base_millions.
    """
    _require_positive(layers=layers, vocabulary=vocabulary, positions=positions)
    norm = 2 * d_model
    embeddings = (vocabulary + positions + 2) * d_model + norm
    layer = attention_parameters(d_model) + plain_parameters(d_model, d_ff) + 2 * norm
    pooler = d_model * d_model + d_model
    return embeddings + layers * layer + pooler


def llama_parameters(
    d_model: int = 4096,
    d_ff: int = 11_008,
    layers: int = 32,
    vocabulary: int = 32_000,
    *,
    d_kv: int | None = None,
    tied: bool = False,
) -> int:
    """Learned parameters of a LLaMA-style decoder; the defaults are LLaMA-7B, 6,738,415,616.

    Bias-free attention and SwiGLU blocks with two RMS normalizations a layer and one at the end; ``tied`` shares
    the input embedding with the output. Source: Touvron et al. (2023).
    """
    _require_positive(layers=layers, vocabulary=vocabulary)
    layer = attention_parameters(d_model, biases=False, d_kv=d_kv) + gated_parameters(d_model, d_ff) + 2 * d_model
    return (1 if tied else 2) * vocabulary * d_model + layers * layer + d_model


def mebibytes(size: float) -> float:
    """Bytes in mebibytes, 2^20 bytes each. Published id: ex6.mebibytes."""
    return size / BYTES_PER_MEBIBYTE


def gibibytes(size: float) -> float:
    """Bytes in gibibytes, 2^30 bytes each."""
    return size / BYTES_PER_GIBIBYTE


def flops_per_token(d_model: int, d_ff: int, *, gated: bool = False) -> int:
    """Floating-point operations of one block's matrix products for one token.

    Two for each weight: 4 d d_ff plain, 6 d d_ff gated. Biases and the activation are not counted.
    """
    weights = gated_parameters(d_model, d_ff) if gated else plain_parameters(d_model, d_ff, biases=False)
    return 2 * weights


@dataclass(frozen=True)
class BudgetInput:
    """What a memory budget is made from.

    Counts of parameters; KV cache as layers, width of keys (and of values) per layer, tokens kept and
    sequences at once; bytes for each stored number. ``optimizer_states`` is 2 for Adam, 0 for inference;
    ``master_bytes`` is 4 where a float32 copy of the weights is kept, else 0.
    """

    parameters: int
    weight_bytes: float = 2
    layers: int = 0
    d_kv: int = 0
    tokens: int = 0
    sequences: int = 1
    cache_bytes: float = 2
    optimizer_states: int = 0
    optimizer_bytes: float = 4
    master_bytes: float = 0


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes of each part; activations, gradients and the numerical method itself are not modelled."""

    weights: float
    kv_cache: float
    optimizer: float
    master: float

    @property
    def total(self) -> float:
        """Bytes of all parts together."""
        return self.weights + self.kv_cache + self.optimizer + self.master


def memory_budget(given: BudgetInput) -> MemoryBudget:
    """Bytes of weights, KV cache and, for training, optimizer and master state.

    Source: the mechanism page's budget and its exclusions: activations, gradients and the training or
    quantization algorithm are left out.

    Raises:
        ValueError: a count or size is negative.
    """
    _require_positive(**vars(given))
    return MemoryBudget(
        weights=given.parameters * given.weight_bytes,
        kv_cache=2 * given.layers * given.d_kv * given.tokens * given.sequences * given.cache_bytes,
        optimizer=given.parameters * given.optimizer_states * given.optimizer_bytes,
        master=given.parameters * given.master_bytes,
    )
