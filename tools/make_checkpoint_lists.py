"""List the arrays of both checkpoints, for live lessons, which count a model without having its weights at hand.

python -m tools.make_checkpoint_lists            writes tools/live/checkpoints.json
python -m tools.make_checkpoint_lists --check    compares it with what would be written
"""

import json
import sys
from collections.abc import Mapping

from ffn.checkpoints import Stored, load_minilm, load_smollm2
from tools.places import ROOT

__all__ = ["TARGET", "text"]

TARGET = ROOT / "tools" / "live" / "checkpoints.json"


def _listed(stored: Mapping[str, Stored]) -> dict[str, list[object]]:
    """Each array's shape, number format and bytes."""
    return {name: [entry.shape, entry.kind, entry.nbytes] for name, entry in stored.items()}


def text() -> str:
    """The lists as JSON, an array a line."""
    models = {"minilm": _listed(load_minilm().stored), "smollm2": _listed(load_smollm2().stored)}
    blocks = []
    for model, arrays in models.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in arrays.items()]
        blocks.append(f'"{model}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n " + ",\n ".join(blocks) + "\n}\n"


def main() -> int:
    """Write the lists, or compare them with those that are there."""
    made = text()
    if "--check" in sys.argv[1:]:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == made
        print(f"{TARGET}: {'as it would be written' if same else 'differs from what would be written'}")
        return 0 if same else 1
    TARGET.write_text(made, encoding="utf-8")
    print(f"{TARGET}: {len(made):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
