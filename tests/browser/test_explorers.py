"""The explorers in a real browser: their figures are those of ffn, by mouse, by keyboard and by address."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from ffn import ACTIVATIONS, FeedForward, GatedFeedForward, normal_cdf, published_inputs, sigmoid
from ffn.exceptions import ShapeError
from ffn.ledger import (
    BudgetInput,
    attention_parameters,
    encoder_parameters,
    gated_parameters,
    gibibytes,
    llama_parameters,
    mebibytes,
    memory_budget,
    plain_parameters,
)
from tests.browser.front import (
    EXPLORERS,
    WIDE,
    Reader,
    axe_violations,
    careless_reader,
    reader,
    scrolls_sideways,
    usual_context,
)

__all__ = ["careless_reader", "reader", "usual_context"]

SAME = {"rel": 1e-9, "abs": 1e-300}
FUNCTIONS = [name for name in ACTIVATIONS if name != "identity"]
GATES: dict[str, Callable[[float], Any]] = {
    "relu": lambda z: np.heaviside(z, 0),
    "gelu": normal_cdf,
    "silu": sigmoid,
    "gelu_tanh": lambda z: sigmoid(2 * np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)),
}


def figures(cells: Locator) -> list[float]:
    """The numbers of some cells, with all their digits."""
    values: list[str] = cells.locator("data").evaluate_all("all => all.map(each => each.value)")
    return [float(value) for value in values]


def explorer(page: Page) -> Locator:
    return page.locator(".ffn-explorer")


def waits_for_address(page: Page, part: str) -> None:
    page.wait_for_function("part => location.hash.includes(part)", arg=part)


# The arithmetic itself, on many numbers


def computed(page: Page, expression: str, given: Any) -> Any:
    """Evaluate an expression of the module ffn.mjs on the page, as `ffn` with `given`."""
    script = f"async given => {{ const ffn = await import('/_static/ffn.mjs'); return {expression}; }}"
    return page.evaluate(script, given)


def test_value_and_slope_are_ffns_from_tail_to_tail(reader: Reader) -> None:
    rng = np.random.default_rng(7)
    z = np.concatenate([rng.uniform(-37, 37, 3000), rng.standard_normal(1000), [0.0, -0.5, 2.0, 1e4, -1e4]])
    page = reader.open(EXPLORERS["activations"])
    for name, activation in ACTIVATIONS.items():
        both = f"given.map(z => [ffn.ACTIVATIONS.{name}.value(z), ffn.ACTIVATIONS.{name}.slope(z)])"
        value, slope = np.array(computed(page, both, z.tolist())).T
        np.testing.assert_allclose(value, activation.function(z), rtol=1e-9, atol=1e-300, err_msg=name)
        # Near a zero of a slope digits cancel, here as in ffn: 1e-15 is a few roundings of the terms.
        np.testing.assert_allclose(slope, activation.derivative(z), rtol=1e-9, atol=1e-15, err_msg=name)


def test_the_gate_is_the_fraction_that_passes(reader: Reader) -> None:
    z = np.random.default_rng(8).uniform(-8, 8, 500)
    page = reader.open(EXPLORERS["activations"])
    for name, fraction in GATES.items():
        gate = np.array(computed(page, f"given.map(ffn.ACTIVATIONS.{name}.gate)", z.tolist()))
        np.testing.assert_allclose(gate, fraction(z), rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(z * gate, ACTIVATIONS[name].function(z), rtol=1e-9, err_msg=name)


# Activations


def assert_table_is_ffns(page: Page, z: float) -> None:
    for name in FUNCTIONS:
        row = explorer(page).locator(f"tr[data-name={name}]")
        activation = ACTIVATIONS[name]
        expected = [activation.function(z), activation.derivative(z)]
        expected += [GATES[name](z)] if name in GATES else []
        assert figures(row) == pytest.approx([float(value) for value in expected], **SAME), name
        shown = [float(text) for text in row.locator("data").all_inner_texts()]
        assert shown == pytest.approx(figures(row), rel=6e-10), name


def test_a_typed_number_gives_ffns_figures(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    for z in (-0.5, 2, 0, -10, 2.7, -37, 1234.5678901, *np.random.default_rng(9).normal(0, 3, 5)):
        explorer(page).get_by_label("z as a number").fill(repr(float(z)))
        assert_table_is_ffns(page, float(z))


def test_the_slider_moves_by_keyboard(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    slider = explorer(page).get_by_role("slider", name="z")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    z = float(slider.input_value())
    assert z == pytest.approx(-0.47)
    assert_table_is_ffns(page, z)
    page.keyboard.press("End")
    assert_table_is_ffns(page, float(slider.input_value()))


def test_z_can_be_dragged_on_the_picture(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    plot = explorer(page).get_by_role("img")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    page.mouse.up()
    z = float(explorer(page).get_by_label("z as a number").input_value())
    assert 2.5 < z < 3.5
    assert float(explorer(page).get_by_role("slider").input_value()) == pytest.approx(z)
    assert_table_is_ffns(page, z)
    page.mouse.move(box["x"], middle)
    assert float(explorer(page).get_by_label("z as a number").input_value()) == z


def test_what_is_no_number_leaves_the_figures_as_they_were(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    explorer(page).get_by_label("z as a number").fill("")
    assert_table_is_ffns(page, -0.5)


def test_the_views_show_their_curves(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    here = explorer(page)
    expect(here.locator("polyline")).to_have_count(4)
    here.get_by_label("GELU (tanh)").check()
    expect(here.locator("polyline")).to_have_count(5)
    here.get_by_label("Gate", exact=True).check()
    # tanh has no gate.
    expect(here.locator("polyline")).to_have_count(4)
    expect(here.get_by_text("SiLU: z × sigmoid(z) = -0.5 × 0.377541 = -0.18877")).to_be_visible()
    here.get_by_label("Slope", exact=True).check()
    expect(here.get_by_role("img")).to_have_attribute("aria-label", re.compile("^Slope over z .* z = -0.5"))


def test_a_setting_can_be_shared_by_its_address(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"])
    explorer(page).get_by_label("z as a number").fill("1.25")
    explorer(page).get_by_label("Slope", exact=True).check()
    explorer(page).get_by_label("tanh", exact=True).uncheck()
    waits_for_address(page, "z=1.25&view=slope&curves=relu,gelu,silu")
    other = reader.open(EXPLORERS["activations"], setting=page.evaluate("location.hash"))
    assert_table_is_ffns(other, 1.25)
    expect(explorer(other).get_by_label("Slope", exact=True)).to_be_checked()
    expect(explorer(other).locator("polyline")).to_have_count(3)


def test_an_address_that_makes_no_sense_does_no_harm(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"], setting="#z=abc&view=constructor&curves=x")
    for setting in ("", "#explore", "#z=1e999", "#=&&==%zz"):
        if setting:
            page.evaluate("hash => { location.hash = hash }", setting)
        assert_table_is_ffns(page, -0.5)
        expect(explorer(page).get_by_label("Value", exact=True)).to_be_checked()


# Forward pass


def array_text(array: np.ndarray[Any, Any]) -> str:
    return "\n".join(" ".join(repr(float(value)) for value in row) for row in np.atleast_2d(array))


def give(page: Page, **arrays: np.ndarray[Any, Any] | str) -> None:
    """Type arrays into the explorer's text areas."""
    editor = explorer(page).locator("details.ffn-editor")
    if editor.get_attribute("open") is None:
        editor.locator("summary").click()
    for name, array in arrays.items():
        text = array if isinstance(array, str) else array_text(array)
        editor.locator(f"textarea[data-array={name}]").fill(text)


def stage(page: Page, name: str) -> list[float]:
    return figures(explorer(page).locator(f"tr[data-stage={name}]"))


def assert_trace(page: Page, trace: Any, names: tuple[str, ...]) -> None:
    for name in names:
        assert stage(page, name) == pytest.approx(getattr(trace, name).tolist(), rel=1e-9, abs=1e-14), name


def press(page: Page, name: str) -> None:
    # At the first and the last step a button is marked as disabled, but keeps the focus; Playwright would wait.
    explorer(page).get_by_role("button", name=name).click(force=True)


def next_step(page: Page) -> None:
    press(page, "Next")


def cell_d() -> FeedForward:
    given = published_inputs("ex2")
    return FeedForward(given["W1"], given["b1"], given["W2"], given["b2"])


def test_it_begins_with_the_numbers_of_cell_d(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    assert_trace(page, cell_d().trace(published_inputs("ex2")["x"]), ("x", "u", "h", "y"))
    expect(explorer(page).get_by_role("status")).to_have_text("Step 1 of 9. Input")


def test_a_plain_block_of_ones_own_is_ffns(reader: Reader) -> None:
    rng = np.random.default_rng(1)
    page = reader.open(EXPLORERS["forward"])
    for activation in [*ACTIVATIONS, *ACTIVATIONS]:
        d, m = rng.integers(1, 5), rng.integers(1, 7)
        x, b_2 = rng.normal(size=(2, d))
        W_1, W_2, b_1 = rng.normal(size=(d, m)), rng.normal(size=(m, d)), rng.normal(size=m)
        explorer(page).get_by_label("activation").select_option(activation)
        give(page, x=x, W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2)
        assert_trace(page, FeedForward(W_1, b_1, W_2, b_2, activation).trace(x), ("x", "u", "h", "y"))


def test_a_gated_block_of_ones_own_is_ffns(reader: Reader) -> None:
    rng = np.random.default_rng(3)
    page = reader.open(EXPLORERS["forward"])
    explorer(page).get_by_label("gated").check()
    for activation in ACTIVATIONS:
        x, W_g, W_u, W_d = (rng.normal(size=shape) for shape in (4, (4, 6), (4, 6), (6, 4)))
        explorer(page).get_by_label("activation").select_option(activation)
        give(page, x=x, W_g=W_g, W_u=W_u, W_d=W_d)
        trace = GatedFeedForward(W_g, W_u, W_d, activation).trace(x)
        assert_trace(page, trace, ("x", "u_g", "gate", "up", "h", "y"))


def test_the_gated_block_begins_with_cell_ds_numbers_and_silu(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    explorer(page).get_by_label("gated").check()
    given = published_inputs("ex2")
    block = GatedFeedForward(given["W1"], np.transpose(given["W2"]), given["W2"], "silu")
    assert_trace(page, block.trace(given["x"]), ("x", "u_g", "gate", "up", "h", "y"))


def test_the_steps_make_one_entry_after_the_other(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    trace = cell_d().trace(published_inputs("ex2")["x"])
    made = []
    for _ in range(8):
        next_step(page)
        made += figures(explorer(page).locator(".ffn-made"))
    assert made == pytest.approx([*trace.u, *trace.h, *trace.y])
    next_step(page)
    expect(explorer(page).get_by_role("status")).to_contain_text("Step 9 of 9. Project: y2 = 0")


def test_a_step_lists_the_products_that_make_the_entry(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    for _ in range(3):
        next_step(page)
    block, x = cell_d(), np.array(published_inputs("ex2")["x"])
    rows = explorer(page).locator("table", has_text="product").locator("tbody tr")
    given = [figures(row) for row in rows.all()]
    terms = [[value, weight, value * weight] for value, weight in zip(x, block.W_1[:, 2], strict=True)]
    assert block.b_1 is not None
    assert given == [*terms, [block.b_1[2]], [float(x @ block.W_1[:, 2] + block.b_1[2])]]
    used = figures(explorer(page).locator("table[data-array=W_1] .ffn-used"))
    assert used == block.W_1[:, 2].tolist()


def test_entries_that_are_not_made_yet_are_not_shown(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    next_step(page)
    cells = explorer(page).locator("table[data-array=u] td")
    assert cells.all_inner_texts()[0] == "1"
    expect(cells.nth(1)).to_contain_text("not yet")


def test_back_and_the_arrow_keys(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    said = explorer(page).get_by_role("status")
    explorer(page).get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Step 3 of 9")
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("Step 2 of 9")
    press(page, "Back")
    press(page, "Back")
    expect(said).to_contain_text("Step 1 of 9")


def test_a_stage_can_be_chosen_and_keeps_the_focus(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    explorer(page).get_by_role("button", name="Project").focus()
    page.keyboard.press("Enter")
    expect(explorer(page).get_by_role("status")).to_contain_text("Step 8 of 9. Project")
    expect(explorer(page).get_by_role("button", name="Project")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(explorer(page).get_by_role("status")).to_contain_text("Step 9 of 9")


def shape_error(block: type[FeedForward | GatedFeedForward], x: Any, **arrays: Any) -> str:
    """What ffn says about arrays that do not fit."""
    with pytest.raises(ShapeError) as raised:
        block(**arrays).trace(x)
    return str(raised.value)


def test_shapes_that_do_not_fit_are_refused_with_ffns_message(reader: Reader) -> None:
    given = published_inputs("ex2")
    arrays = {"x": given["x"], "W_1": given["W1"], "b_1": given["b1"], "W_2": given["W2"], "b_2": given["b2"]}
    page = reader.open(EXPLORERS["forward"])
    for name, wrong in (("b_1", [1, 2]), ("b_2", [1]), ("W_2", [[1, 2]]), ("W_1", [[1, 2]]), ("x", [1, 2, 3])):
        give(page, **{name: np.array(wrong)})
        message = shape_error(FeedForward, **{**arrays, name: wrong})
        expect(explorer(page).get_by_role("alert")).to_have_text(message)
        expect(explorer(page).get_by_role("button", name="Next")).to_be_hidden()
        give(page, **{name: np.array(arrays[name])})


def test_gated_shapes_that_do_not_fit_are_refused_with_ffns_message(reader: Reader) -> None:
    given = published_inputs("ex2")
    arrays = {"x": given["x"], "W_g": given["W1"], "W_u": np.transpose(given["W2"]), "W_d": given["W2"]}
    page = reader.open(EXPLORERS["forward"])
    explorer(page).get_by_label("gated").check()
    for name, wrong in (("W_u", [[1, 2]]), ("W_d", [[1, 2]]), ("x", [1])):
        give(page, **{name: np.array(wrong)})
        message = shape_error(GatedFeedForward, **{**arrays, name: wrong})
        expect(explorer(page).get_by_role("alert")).to_have_text(message)
        give(page, **{name: np.array(arrays[name])})


NO_MATRIX = {
    "1 x 2\n0 1 -1": "W_1, row 1: “x” is not a number.",
    "1 0\n0 1 -1": "W_1: row 1 has 2 numbers and row 2 has 3; make them equal.",
    "": "W_1, row 1 is empty.",
    "1 2 3 4 5 6 7\n1 2 3 4 5 6 7": "W_1 is 2 × 7; there is room for 4 × 6.",
    "1e999 0 0\n0 0 0": "W_1, row 1: “1e999” is not a number.",
    "<b>1</b> 0 0\n0 0 0": "W_1, row 1: “<b>1</b>” is not a number.",
}


def test_what_is_no_matrix_is_refused_in_words(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    for text, message in NO_MATRIX.items():
        give(page, W_1=text)
        expect(explorer(page).get_by_role("alert")).to_have_text(message)
        give(page, W_1="1 0 2\n0 1 -1")
        expect(explorer(page).get_by_role("alert")).to_be_hidden()
    assert_trace(page, cell_d().trace(published_inputs("ex2")["x"]), ("u", "y"))


def test_ones_own_numbers_can_be_shared_by_their_address(reader: Reader) -> None:
    page = reader.open(EXPLORERS["forward"])
    give(page, x="0.25, -1.5")
    next_step(page)
    waits_for_address(page, "step=1")
    setting = page.evaluate("location.hash")
    other = reader.open(EXPLORERS["forward"], setting=setting)
    assert_trace(other, cell_d().trace([0.25, -1.5]), ("x", "u", "h", "y"))
    expect(explorer(other).get_by_role("status")).to_contain_text("Step 2 of 9")
    expect(explorer(other).get_by_label("numbers of")).to_have_value("own")


@pytest.mark.parametrize(
    "setting",
    ["#block=constructor&kind=toString&f=valueOf&step=-5", "#block=tiny&step=9999", "#kind=__proto__&step=x"],
)
def test_a_forward_address_that_makes_no_sense_does_no_harm(reader: Reader, setting: str) -> None:
    page = reader.open(EXPLORERS["forward"], setting=setting)
    expect(explorer(page).get_by_role("status")).to_contain_text("of 9.")


# Budget


def part(page: Page, name: str) -> list[float]:
    return figures(explorer(page).locator(f"tr[data-part={name}]"))


def fill(page: Page, **setting: Any) -> None:
    """Set the explorer's controls by the names that the ledger gives them."""
    for name, value in setting.items():
        control = explorer(page).locator(f"[name={name}]")
        if isinstance(value, bool):
            control.set_checked(value)
        elif control.evaluate("node => node.tagName") == "SELECT":
            control.select_option(str(value))
        else:
            control.fill(str(value))


def assert_budget(page: Page, parameters: int, **given: Any) -> None:
    budget = memory_budget(BudgetInput(parameters, **given))
    assert part(page, "whole") == [parameters]
    for name in ("weights", "kv_cache", "optimizer", "master", "total"):
        size = getattr(budget, name)
        assert part(page, name) == pytest.approx([size, mebibytes(size), gibibytes(size)], rel=1e-9), name


def test_the_presets_are_the_ledgers(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    presets: dict[str, tuple[int, dict[str, Any]]] = {
        "bert-training": (encoder_parameters(), {"weight_bytes": 4, "optimizer_states": 2}),
        "bert-inference": (encoder_parameters(), {"weight_bytes": 2}),
        "llama-inference": (llama_parameters(), {"layers": 32, "d_kv": 4096, "tokens": 2048}),
        "llama-training": (llama_parameters(), {"optimizer_states": 2, "master_bytes": 4}),
    }
    for preset, (parameters, given) in presets.items():
        explorer(page).get_by_label("begin with").select_option(preset)
        assert_budget(page, parameters, **given)


def test_gated_models_of_ones_own_are_the_ledgers(reader: Reader) -> None:
    rng = np.random.default_rng(4)
    page = reader.open(EXPLORERS["budget"])
    explorer(page).get_by_label("gated").check()
    for tied in (True, False, True):
        d, m, layers, vocabulary = (int(rng.integers(1, high)) for high in (9000, 30_000, 90, 250_000))
        d_kv = int(rng.integers(1, d + 1))
        cache = {"tokens": int(rng.integers(1e6)), "sequences": int(rng.integers(99)), "cache_bytes": 1}
        training = {"weight_bytes": 0.5, "optimizer_states": 2, "optimizer_bytes": 1, "master_bytes": 2}
        model = {"d_model": d, "d_ff": m, "layers": layers, "vocabulary": vocabulary, "d_kv": d_kv}
        fill(page, **model, tied=tied, **cache, **training)
        whole = llama_parameters(d, m, layers, vocabulary, d_kv=d_kv, tied=tied)
        assert part(page, "block") == [gated_parameters(d, m)]
        assert part(page, "attention") == [attention_parameters(d, biases=False, d_kv=d_kv)]
        assert part(page, "blocks") == [layers * gated_parameters(d, m)]
        assert_budget(page, whole, layers=layers, d_kv=d_kv, **cache, **training)


def test_plain_models_of_ones_own_are_the_ledgers(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    model = {"d_model": 384, "d_ff": 1536, "layers": 6, "vocabulary": 30_522, "positions": 512}
    whole = encoder_parameters(**model)
    for biases in (True, False):
        fill(page, **model, biases=biases, weight_bytes=4, optimizer_states=0)
        block, attention = plain_parameters(384, 1536, biases=biases), attention_parameters(384, biases=biases)
        without = plain_parameters(384, 1536) - block + attention_parameters(384) - attention
        assert part(page, "block") == [block]
        assert part(page, "attention") == [attention]
        assert_budget(page, whole - 6 * without, weight_bytes=4)


def test_the_parts_of_a_model_add_up(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    names = ("blocks", "attentions", "embeddings", "norms", "pooler")
    assert sum(part(page, name)[0] for name in names) == part(page, "whole")[0]


def test_keys_and_values_follow_the_width_until_they_are_grouped(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    fill(page, d_model=1024)
    expect(explorer(page).locator("[name=d_kv]")).to_have_value("1024")
    fill(page, d_kv=256)
    fill(page, d_model=2048)
    expect(explorer(page).locator("[name=d_kv]")).to_have_value("256")


def test_what_is_no_width_is_refused_in_words(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    said = explorer(page).get_by_role("alert")
    for value in ("", "-1", "1.5", "1e9", "0"):
        fill(page, d_ff=value)
        expect(said).to_contain_text("d_ff: a whole number from 1 to 1,000,000 is needed")
        expect(explorer(page).locator("[name=d_ff]")).to_have_attribute("aria-invalid", "true")
        assert part(page, "whole") == [encoder_parameters()]
        fill(page, d_ff=3072)
        expect(said).to_be_hidden()


def test_the_bar_says_its_parts(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    explorer(page).get_by_label("begin with").select_option("llama-training")
    said = "The parts of the total: weights 14.3 %, optimizer 57.1 %, master copy 28.6 %."
    expect(explorer(page).get_by_role("img", name=said)).to_be_visible()
    widths = [part.bounding_box() for part in explorer(page).locator(".ffn-bar > span").all()]
    assert [box["width"] / widths[0]["width"] for box in widths if box and widths[0]] == pytest.approx(
        [1, 4, 2], rel=0.02
    )


def test_a_budget_can_be_shared_by_its_address(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"])
    explorer(page).get_by_label("begin with").select_option("llama-inference")
    waits_for_address(page, "preset=llama-inference")
    fill(page, tokens=4096)
    waits_for_address(page, "tokens=4096")
    other = reader.open(EXPLORERS["budget"], setting=page.evaluate("location.hash"))
    assert_budget(other, llama_parameters(), layers=32, d_kv=4096, tokens=4096)
    expect(explorer(other).get_by_label("begin with")).to_have_value("own")


@pytest.mark.parametrize("setting", ["#preset=toString", "#preset=bert-training&d_ff=5"])
def test_a_budget_address_that_makes_no_sense_does_no_harm(reader: Reader, setting: str) -> None:
    page = reader.open(EXPLORERS["budget"], setting=setting)
    assert part(page, "whole") == [encoder_parameters()]


def test_a_budget_address_with_a_wrong_number_is_refused_in_words(reader: Reader) -> None:
    page = reader.open(EXPLORERS["budget"], setting="#preset=own&d_ff=much")
    expect(explorer(page).get_by_role("alert")).to_contain_text("d_ff: a whole number")


# For everyone


@pytest.mark.parametrize("name", EXPLORERS)
def test_without_scripts_there_is_a_table(careless_reader: Reader, name: str) -> None:
    page = careless_reader.open(EXPLORERS[name], careless_reader.context(scripts=False))
    expect(explorer(page).get_by_role("table")).to_be_visible()
    expect(explorer(page).get_by_text("The explorer itself needs its script.")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", EXPLORERS)
def test_axe_finds_nothing(reader: Reader, name: str, dark: bool) -> None:
    page = reader.open(EXPLORERS[name], reader.context(dark=dark))
    if name == "activations":
        explorer(page).get_by_label("Gate", exact=True).check()
    if name == "forward":
        next_step(page)
        give(page, x="1 -1")
    assert axe_violations(page) == []
    if name == "forward":
        give(page, x="1 -1 0")
    if name == "budget":
        fill(page, d_ff="0")
    if name != "activations":
        expect(explorer(page).get_by_role("alert")).to_be_visible()
        assert axe_violations(page) == []


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_phone_shows_no_sideways_scroll(reader: Reader, name: str) -> None:
    page = reader.open(EXPLORERS[name], reader.context(phone=True))
    if name == "forward":
        explorer(page).get_by_label("gated").check()
        give(page, x="0.123456789 -1 1 2", W_g="1 2 3 4 5 6\n" * 4, W_u="1 2 3 4 5 6\n" * 4, W_d="1 2 3 4\n" * 6)
        for _ in range(30):
            next_step(page)
            assert not scrolls_sideways(page)
    assert not scrolls_sideways(page)


def test_tables_that_scroll_on_a_phone_can_be_reached_by_keyboard(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"], reader.context(phone=True))
    boxes = page.locator("article .cell_output .ffn-table")
    scrolling = [box.evaluate("box => box.scrollWidth > box.clientWidth + 1") for box in boxes.all()]
    assert any(scrolling)
    assert [box.get_attribute("tabindex") for box in boxes.all()] == ["0" if s else None for s in scrolling]
    assert axe_violations(page) == []
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    for box in boxes.all():
        expect(box).not_to_have_attribute("tabindex", "0")


def test_a_finger_moves_z_on_the_picture(reader: Reader) -> None:
    page = reader.open(EXPLORERS["activations"], reader.context(phone=True))
    plot = explorer(page).get_by_role("img")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + 40)
    assert 2 < float(explorer(page).get_by_label("z as a number").input_value()) < 3
    expect(plot).to_have_css("touch-action", "pan-y")
