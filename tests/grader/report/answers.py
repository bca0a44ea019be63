"""Right answers to the unit `activations` as people who work alone write them: many forms, many names, many layouts."""

import random
import re

__all__ = ["ORDER", "independent", "renamed"]

# [[a||b||c]] is a choice; the first is taken as often as all the others together.
_FORMS = {
    "relu": [
        """
def relu(z):
    z = np.[[asarray(z, dtype=float)||array(z, dtype=float)||asarray(z, float)||asarray(z) * 1.0]]
    return [[np.maximum(z, 0)||np.where(z > 0, z, 0)||(z + np.abs(z)) / 2||np.clip(z, 0, None)]]
""",
        """
def relu(z):
    out = np.array(z, dtype=float, copy=True)
    out[out [[<||<=]] 0] = 0
    return [[out||out[()]]]
""",
        """
def relu(z):
    positive = np.asarray(z, dtype=float)
    [[mask = positive > 0||mask = np.greater(positive, 0)]]
    result = [[np.zeros_like(positive)||np.zeros(positive.shape)]]
    result[mask] = positive[mask]
    return result
""",
    ],
    "relu_grad": [
        """
def one_sided_slopes(z, step=1e-6):
    left = (relu(z) - relu(z - step)) / step
    right = (relu(z + step) - relu(z)) / step
    return [[left, right||(left, right)||float(left), float(right)]]


def relu_grad(z):
    return [[np.where(np.asarray(z) > 0, 1.0, 0.0)||(np.asarray(z) > 0).astype(float)||np.heaviside(z, 0.0)]]
""",
        """
def one_sided_slopes(z, step=1e-6):
    here = relu(z)
    before, after = relu(z - step), relu(z + step)
    return (here - before) / step, (after - here) / step


def relu_grad(z):
    z = np.asarray(z, dtype=float)
    [[slope = np.zeros(z.shape)||slope = np.zeros_like(z)||slope = 0.0 * z]]
    slope[z > 0] = 1
    return slope
""",
        """
def one_sided_slopes(z, step=1e-6):
    def quotient(a, b):
        return (relu(b) - relu(a)) / (b - a)

    return quotient(z - step, z), quotient(z, z + step)


def relu_grad(z):
    [[grad = np.sign(relu(z))||grad = (np.sign(z) + 1) // 2]]
    return grad
""",
    ],
    "sigmoid": [
        """
def sigmoid(z):
    z = np.asarray(z, dtype=float)
    e = np.exp(-np.abs(z))
    return np.where(z [[<||>=]] 0, [[e / (1 + e), 1 / (1 + e)||e, 1) / (1 + e||1 - 1 / (1 + e), 1 / (1 + e)]])
""",
        """
def sigmoid(z):
    z = np.atleast_1d(np.asarray(z, dtype=float))
    out = np.empty_like(z)
    big = z >= 0
    out[big] = 1 / (1 + np.exp(-z[big]))
    [[grown = np.exp(z[~big])||grown = np.exp(z[np.logical_not(big)])]]
    out[~big] = grown / (1 + grown)
    return out
""",
        """
def sigmoid(z):
    def one(value):
        if value [[>= 0||> 0]]:
            return 1 / (1 + math.exp(-value))
        t = math.exp(value)
        return t / ([[1 + t||t + 1]])

    return np.vectorize(one, otypes=[float])(z)
""",
        """
def sigmoid(z):
    shrunk = np.exp(-np.logaddexp(0, -np.asarray(z, dtype=float)))
    return [[shrunk||np.array(shrunk)]]
""",
    ],
    "silu": [
        """
def silu(z):
    z = np.asarray(z, dtype=float)
    [[return z * sigmoid(z)||return sigmoid(z) * z||gate = sigmoid(z)
    return gate * z||return np.multiply(z, sigmoid(z))]]
""",
        """
def silu(z):
    x = np.array(z, dtype=float)
    x *= sigmoid(x)
    return x
""",
    ],
    "normal_cdf": [
        """
def normal_cdf(z):
    z = np.asarray(z, dtype=float)
    return [[0.5 * erfc(-z / math.sqrt(2))||erfc(-z / np.sqrt(2)) / 2||0.5 * erfc(-z * 0.5**0.5)]]
""",
        """
def normal_cdf(z):
    scaled = -np.asarray(z, dtype=float) / [[np.sqrt(2)||math.sqrt(2.0)||2**0.5]]
    half = erfc(scaled)
    return [[half / 2||half * 0.5]]
""",
    ],
    "gelu": [
        """
def gelu(z):
    z = np.asarray(z, dtype=float)
    [[return z * normal_cdf(z)||return normal_cdf(z) * z||phi = normal_cdf(z)
    return z * phi]]
""",
        """
def gelu(z):
    return np.[[multiply||prod]](np.asarray(z, float), normal_cdf(z))
""",
    ],
    "gelu_tanh": [
        """
def gelu_tanh(z):
    z = np.asarray(z, dtype=float)
    inner = [[math.sqrt(2 / math.pi)||np.sqrt(2 / np.pi)]] * (z + 0.044715 * z**3)
    return [[0.5 * z * (1 + np.tanh(inner))||z / 2 * (1 + np.tanh(inner))||z * (1 + np.tanh(inner)) / 2]]


def largest_gap(z):
    gap = np.abs(gelu(z) - gelu_tanh(z))
    [[worst = np.argmax(gap)||worst = gap.argmax()||worst = int(np.argmax(gap))]]
    return [[gap[worst], abs(z[worst])||gap.max(), np.abs(z)[worst]]]
""",
        """
def gelu_tanh(z):
    z = np.array(z, dtype=float)
    cubic = 0.044715 * [[z * z * z||np.power(z, 3)||z**3]]
    factor = np.sqrt(2 / np.pi)
    return 0.5 * z + 0.5 * z * np.tanh(factor * (z + cubic))


def largest_gap(z):
    best, where = 0.0, 0.0
    for value in z:
        difference = abs(gelu(value) - gelu_tanh(value))
        if difference > best:
            best, where = difference, abs(value)
    return best, where
""",
    ],
    "tanh_neuron": [
        """
def tanh_neuron(x, w, b):
    return np.tanh(w * x + b)


def tanh_neuron_dw(x, w, b):
    [[a = tanh_neuron(x, w, b)
    return (1 - a**2) * x||return (1 - tanh_neuron(x, w, b) ** 2) * x||return x * (1 - np.tanh(w * x + b) ** 2)]]
""",
        """
def tanh_neuron(x, w, b):
    u = x * w + b
    return [[np.tanh(u)||math.tanh(u)]]


def tanh_neuron_dw(x, w, b):
    u = x * w + b
    [[return x / np.cosh(u) ** 2||slope = 1 - np.tanh(u) * np.tanh(u)
    return slope * x]]
""",
    ],
    "silu_grad": [
        """
def silu_grad(z):
    z = np.asarray(z, dtype=float)
    [[s = sigmoid(z)||g = sigmoid(z)]]
    return [[s + z * s * (1 - s)||s * (1 + z * (1 - s))||s * (1 + z - z * s)||silu(z) + s * (1 - silu(z))]]
""",
        """
def silu_grad(z):
    gate = sigmoid(z)
    slope_of_gate = gate * sigmoid(-np.asarray(z, dtype=float))
    return gate + np.asarray(z, dtype=float) * slope_of_gate
""",
    ],
    "gelu_grad": [
        """
def gelu_grad(z):
    z = np.asarray(z, dtype=float)
    density = np.exp(-(z**2) / 2) / [[math.sqrt(2 * math.pi)||np.sqrt(2 * np.pi)]]
    return [[normal_cdf(z) + z * density||z * density + normal_cdf(z)]]
""",
        """
def gelu_grad(z):
    z = np.array(z, dtype=float)
    phi = [[(2 * np.pi) ** -0.5||1 / math.sqrt(2 * math.pi)]] * np.exp(-0.5 * z * z)
    total = normal_cdf(z)
    total = total + z * phi
    return total
""",
    ],
    "tail_reach": [
        """
def tail_reach(f):
    z = 0.0
    while [[f(z - 1) != 0||abs(f(z - 1)) > 0]]:
        z -= 1
    return [[z||int(z)||float(z)]]
""",
        """
def tail_reach(f):
    for k in range([[1000||2000||800]]):
        if f(-k - 1.0) == 0:
            return -k
    return [[-1000||None]]
""",
        """
def tail_reach(f):
    grid = -np.arange(0, 1000)
    alive = np.array([f(float(v)) != 0 for v in grid])
    return grid[alive][-1]
""",
    ],
}

ORDER = tuple(_FORMS)
"""The steps that there are answers to."""

_NAMES = ("out", "e", "gate", "inner", "gap", "worst", "density", "phi", "scaled", "half", "left", "right", "mask")
_OTHERS = ("res", "tmp", "val", "y", "acc", "vals", "t1", "foo", "answer", "outcome", "q", "r2", "it", "help_me")
_COMMENTS = ("", "", "", "    # done", "    # see the hint", "    # elementwise")


_HABITS = (
    "",
    "",
    "",
    "    single = np.ndim({a}) == 0",
    "    shape = np.shape({a})",
    "    if {a} is None:\n        return None",
    "    assert {a} is not None",
    "    old = np.seterr(over='ignore')",
    "    print('called with', {a})",
    "    {a} = np.array({a}, dtype=np.float64)",
    "    n = len(np.atleast_1d({a}))",
    "    count = np.size({a})\n    if count == 0:\n        return {a}",
    "    global calls\n    calls = 1",
)


def _with_habits(text: str, chance: random.Random) -> str:
    """Code with lines that some people write and others do not."""

    def begin(match: re.Match[str]) -> str:
        habit = chance.choice(_HABITS).format(a=match[2])
        return f"{match[1]}\n{habit}" if habit else match[1]

    def end(match: re.Match[str]) -> str:
        if chance.random() < 0.6 or "," in match[1]:
            return match[0]
        end = chance.choice(("{n} = {e}\n    return {n}", "{n} = ({e}) * 1\n    return {n}", "return +({e})"))
        return "    " + end.format(n=chance.choice(_OTHERS), e=match[1])

    text = re.sub(r"(?m)^(def \w+\((\w+).*\):)$", begin, text)
    return re.sub(r"(?m)^    return (.+)$", end, text)


def _chosen(text: str, chance: random.Random) -> str:
    def choose(match: re.Match[str]) -> str:
        first, *others = match[1].split("||")
        return first if not others or chance.random() < 0.5 else chance.choice(others)

    return re.sub(r"\[\[(.*?)\]\](?!\])", choose, text, flags=re.DOTALL)


def independent(chance: random.Random) -> dict[str, str]:
    """Right answers of one person who worked alone."""
    found = {}
    for step, forms in _FORMS.items():
        text = forms[0] if chance.random() < 0.4 else chance.choice(forms)
        text = _chosen(text, chance).strip("\n")
        for name in _NAMES:
            if chance.random() < 0.5:
                text = re.sub(rf"\b{name}\b", chance.choice(_OTHERS), text)
        text = _with_habits(text, chance)
        found[step] = re.sub(r"(?m):$", lambda found: f":{chance.choice(_COMMENTS)}", text)
    return found


def renamed(answers: dict[str, str]) -> dict[str, str]:
    """The same answers with other names, other comments and another layout."""
    found = {}
    for step, text in answers.items():
        names = set(re.findall(r"(?m)^\s+(\w+) [*-]?= ", text)) | {"z", "x", "w", "b", "step"}
        for number, name in enumerate(sorted(names)):
            text = re.sub(rf"(?<![.\w]){name}\b", f"mine_{number}", text)
        text = re.sub(r"#[^\n]*", "", text)
        text = re.sub(r"(?m)^    return (.+)$", r"\n    # my own\n    return (\n        \1)", text)
        found[step] = re.sub(r" ([*/+]) ", r"\1", text)
    return found
