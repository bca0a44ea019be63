from collections.abc import Callable
from typing import Any

import pytest

from ffn import FeedForward, GatedFeedForward, ledger
from ffn.ledger import BudgetInput, memory_budget
from ffn.published import published, published_inputs

GIVEN = BudgetInput(
    parameters=100,
    weight_bytes=2,
    layers=3,
    d_kv=4,
    tokens=5,
    sequences=6,
    cache_bytes=2,
    optimizer_states=2,
    optimizer_bytes=4,
    master_bytes=4,
)

WIDTHS = published_inputs("ex6")
D, D_FF = WIDTHS["d_model"], WIDTHS["d_ff"]
ALL_BYTES = WIDTHS["layers"] * ledger.plain_parameters(D, D_FF) * WIDTHS["bytes_per_parameter"]
CORE = published_inputs("mech_core")
SWIGLU = published_inputs("mech_swiglu")

PUBLISHED = {
    "ex6.sublayer": ledger.plain_parameters(D, D_FF),
    "ex6.weights_only": ledger.plain_parameters(D, D_FF, biases=False),
    "ex6.biases": ledger.plain_parameters(D, D_FF) - ledger.plain_parameters(D, D_FF, biases=False),
    "ex6.all_layers": WIDTHS["layers"] * ledger.plain_parameters(D, D_FF),
    "ex6.bytes": ALL_BYTES,
    "ex6.mebibytes": ledger.mebibytes(ALL_BYTES),
    "ex6.bert_base_millions": ledger.encoder_parameters(),
    "recall.ffn_params": ledger.plain_parameters(D, D_FF),
    "mech.core_params": ledger.plain_parameters(CORE["d"], CORE["m"]),
    "mech.swiglu_weights": ledger.gated_parameters(SWIGLU["d"], SWIGLU["d_ff"]),
    "mech.swiglu_bytes": ledger.gated_parameters(SWIGLU["d"], SWIGLU["d_ff"]) * SWIGLU["bytes_per_weight"],
}


@pytest.mark.parametrize("ident", PUBLISHED)
def test_published_count_is_reproduced(ident: str) -> None:
    assert PUBLISHED[ident] == published()[ident].value


def test_plain_parameters_are_two_matrices_and_two_biases() -> None:
    # 2 x 3 + 3 + 3 x 2 + 2
    assert ledger.plain_parameters(2, 3) == 17


def test_plain_parameters_without_biases_are_two_matrices() -> None:
    assert ledger.plain_parameters(2, 3, biases=False) == 12


def test_gated_parameters_are_three_matrices() -> None:
    assert ledger.gated_parameters(2, 3) == 18


@pytest.mark.parametrize(("d", "d_ff"), [(1, 1), (4, 12), (7, 5)])
def test_formulas_count_what_the_blocks_hold(d: int, d_ff: int) -> None:
    up, down = [[0.0] * d_ff] * d, [[0.0] * d] * d_ff
    assert FeedForward(up, [0.0] * d_ff, down, [0.0] * d).parameter_count == ledger.plain_parameters(d, d_ff)
    assert FeedForward(up, None, down, None).parameter_count == ledger.plain_parameters(d, d_ff, biases=False)
    assert GatedFeedForward(up, up, down).parameter_count == ledger.gated_parameters(d, d_ff)


def test_gated_block_at_parity_has_as_many_weights_as_the_plain_one() -> None:
    # 3 x 768 x 2048 = 2 x 768 x 3072
    width = ledger.gated_width_at_parity(3072)
    assert width == 2048
    assert ledger.gated_parameters(768, width) == ledger.plain_parameters(768, 3072, biases=False)


def test_llama_width_is_two_thirds_of_four_times_4096_on_a_multiple_of_256() -> None:
    # 2/3 of 16384 is 10922.67, and 43 x 256 = 11008 is the next multiple.
    assert ledger.gated_width_at_parity(16_384, multiple_of=256) == 11_008


@pytest.mark.parametrize(("d_ff", "width"), [(1, 0), (4, 2), (5, 3), (6, 4), (16_384, 10_922)])
def test_fraction_of_the_gated_width_at_parity_is_dropped(d_ff: int, width: int) -> None:
    # 2/3 of these is 0.67, 2.67, 3.33, 4 and 10922.67.
    assert ledger.gated_width_at_parity(d_ff) == width


def test_gated_width_that_is_a_multiple_already_is_kept() -> None:
    # 2/3 of 384 is 256.
    assert ledger.gated_width_at_parity(384, multiple_of=256) == 256


def test_attention_has_four_square_matrices_with_biases() -> None:
    # 4 x (3 x 3 + 3)
    assert ledger.attention_parameters(3) == 48


def test_attention_without_biases_has_four_square_matrices() -> None:
    assert ledger.attention_parameters(3, biases=False) == 36


@pytest.mark.parametrize(("biases", "count"), [(False, 48), (True, 60)])
def test_grouped_queries_make_keys_and_values_narrower(biases: bool, count: int) -> None:
    # Query and output 2 x 16, key and value 2 x 8; their biases 2 x 4 and 2 x 2.
    assert ledger.attention_parameters(4, biases=biases, d_kv=2) == count


def test_bert_base_has_109_482_240_parameters() -> None:
    # Embeddings (30522 + 512 + 2) 768 + 2 x 768 = 23,837,184; a layer 2,362,368 + 4,722,432 + 3,072 = 7,087,872;
    # pooler 768 x 768 + 768 = 590,592; and 23,837,184 + 12 x 7,087,872 + 590,592 = 109,482,240.
    assert ledger.encoder_parameters() == 109_482_240


def test_encoder_parameters_of_a_tiny_encoder_add_up_by_hand() -> None:
    # d 2, d_ff 3: embeddings (5 + 4 + 2) 2 + 4 = 26, a layer 4 (4 + 2) + 17 + 8 = 49, pooler 6; two layers.
    assert ledger.encoder_parameters(2, 3, layers=2, vocabulary=5, positions=4) == 130


def test_llama_7b_has_6_738_415_616_parameters() -> None:
    # A layer 4 x 4096^2 + 3 x 4096 x 11008 + 2 x 4096 = 202,383,360; embeddings 2 x 32000 x 4096; a last norm.
    assert ledger.llama_parameters() == 6_738_415_616


def test_llama_parameters_of_a_tiny_decoder_add_up_by_hand() -> None:
    # d 4, d_ff 3, d_kv 2: a layer 48 + 36 + 8 = 92; two layers, one shared embedding 5 x 4, a last norm of 4.
    assert ledger.llama_parameters(4, 3, layers=2, vocabulary=5, d_kv=2, tied=True) == 208


def test_tied_embedding_is_counted_once() -> None:
    assert ledger.llama_parameters() - ledger.llama_parameters(tied=True) == 32_000 * 4096


def test_mebibyte_is_two_to_the_twentieth_bytes() -> None:
    assert ledger.mebibytes(3 * 1_048_576) == 3


def test_gibibyte_is_two_to_the_thirtieth_bytes() -> None:
    assert ledger.gibibytes(3 * 1_073_741_824) == 3


def test_plain_block_takes_four_operations_for_each_pair_of_widths() -> None:
    # 4 x 768 x 3072
    assert ledger.flops_per_token(768, 3072) == 9_437_184


def test_gated_block_takes_six_operations_for_each_pair_of_widths() -> None:
    # 6 x 4 x 12
    assert ledger.flops_per_token(4, 12, gated=True) == 288


@pytest.mark.parametrize(
    ("part", "size"),
    [
        ("weights", 100 * 2),
        ("kv_cache", 2 * 3 * 4 * 5 * 6 * 2),
        ("optimizer", 100 * 2 * 4),
        ("master", 100 * 4),
        ("total", 200 + 1440 + 800 + 400),
    ],
)
def test_budget_adds_up_by_hand(part: str, size: int) -> None:
    assert getattr(memory_budget(GIVEN), part) == size


@pytest.mark.parametrize("part", ["kv_cache", "optimizer", "master"])
def test_budget_of_bare_weights_has_nothing_else(part: str) -> None:
    budget = memory_budget(BudgetInput(parameters=10))
    assert getattr(budget, part) == 0
    assert budget.total == 20


@pytest.mark.parametrize("field", vars(GIVEN))
def test_negative_budget_entry_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} is -1; expected a number that is not negative\.$"):
        memory_budget(BudgetInput(**{**vars(GIVEN), field: -1}))


@pytest.mark.parametrize(
    ("count", "arguments"),
    [
        (ledger.plain_parameters, {"d_model": -1, "d_ff": 1}),
        (ledger.plain_parameters, {"d_model": 1, "d_ff": -1}),
        (ledger.gated_parameters, {"d_model": -1, "d_ff": 1}),
        (ledger.gated_parameters, {"d_model": 1, "d_ff": -1}),
        (ledger.gated_width_at_parity, {"d_ff": -1}),
        (ledger.gated_width_at_parity, {"d_ff": 3, "multiple_of": -1}),
        (ledger.gated_width_at_parity, {"d_ff": 3, "multiple_of": 0}),
        (ledger.attention_parameters, {"d_model": -1}),
        (ledger.attention_parameters, {"d_model": 1, "d_kv": -1}),
        (ledger.flops_per_token, {"d_model": 1, "d_ff": -1}),
        (ledger.flops_per_token, {"d_model": -1, "d_ff": 1, "gated": True}),
        *(
            (ledger.encoder_parameters, {name: -1})
            for name in ("d_model", "d_ff", "layers", "vocabulary", "positions")
        ),
        *((ledger.llama_parameters, {name: -1}) for name in ("d_model", "d_ff", "layers", "vocabulary", "d_kv")),
    ],
    ids=lambda value: value.__name__ if callable(value) else "-".join(value),
)
def test_negative_count_is_refused(count: Callable[..., Any], arguments: dict[str, int]) -> None:
    wrong = [name for name, value in arguments.items() if value < 1]
    with pytest.raises(ValueError, match=rf"{wrong[0]} is {arguments[wrong[0]]}; expected"):
        count(**arguments)
