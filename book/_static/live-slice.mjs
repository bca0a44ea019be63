/** What a live page shows that reads the real models: their files are too large to load with a page. */

export const SLICE_WORDS =
  "This page reads two models, and MiniLM's file alone has 90 MB. In the browser it runs on a slice: one sentence in " +
  "layer 0 of MiniLM, with 192 of its 1536 hidden units, and the lists of all arrays. Cells that need more are left " +
  "out and say so; the notebook that you can download runs them. This cell puts the slice to work:";

export const SLICE_CELL = `import numpy as np

from ffn import gelu, layer_norm

slice_0 = np.load("layer.npz")
x = slice_0["input"]
h = gelu(x @ slice_0["expand.weight"].T + slice_0["expand.bias"])
y = h @ slice_0["project.weight"].T + slice_0["project.bias"]
y += slice_0["others"]  # what the other 1344 units add
norm = slice_0["norm.gain"], slice_0["norm.bias"]
out = layer_norm(x + y, *norm, epsilon=float(slice_0["norm.epsilon"]))
print(*slice_0["tokens"])
print("shapes:", x.shape, h.shape, y.shape)
print("difference to MiniLM's own output:", np.abs(out - slice_0["output"]).max())`;
