"""The two methods of ``circuits.py`` on stock models: ``python benchmarks/stock_circuits.py METHOD bench/ edges.json``.

Needs torch and safetensors, and nothing of this package. A Llama is written out here, in which every place (a head's
queries, keys and values too) reads a copy of the residual stream of its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.functional import silu

STEPS = {"eap": (1.0,), "eap-ig": tuple((k + 0.5) / 8 for k in range(8))}


class Llama:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.W = {
            name.removesuffix(".weight"): W.double() for name, W in load_file(folder / "model.safetensors").items()
        }
        self.layers, self.heads = self.config["num_hidden_layers"], self.config["num_attention_heads"]
        self.group, self.size = self.heads // self.config["num_key_value_heads"], self.config["head_dim"]

    def run(self, start, keep=lambda place, x: x):
        """Logits, and what every component writes; ``keep`` sees what every place reads."""
        writes = {"input": start}
        length = start.shape[1]
        angles = torch.arange(length)[:, None] * self.config["rope_theta"] ** (
            -torch.arange(0, self.size, 2).double() / self.size
        )
        cos, sin = (f(torch.cat([angles, angles], 1)) for f in (torch.cos, torch.sin))
        later = torch.ones(length, length).triu(1).bool()

        def seen(place, norm):
            x = keep(place, sum(writes.values()))
            return x * (x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"]).rsqrt() * self.W[norm]

        def turned(x):
            one, two = x.chunk(2, -1)
            return x * cos + torch.cat([-two, one], -1) * sin

        def part(W, j):
            return W[j * self.size : (j + 1) * self.size]

        for i in range(self.layers):
            at, made = f"model.layers.{i}", {}
            Q, K, V, O = (self.W[f"{at}.self_attn.{way}_proj"] for way in "qkvo")
            for j in range(self.heads):
                q, k, v = (
                    seen(f"a{i}.h{j}.{way}", f"{at}.input_layernorm") @ part(W, j if way == "q" else j // self.group).T
                    for way, W in zip("qkv", (Q, K, V), strict=True)
                )
                logits = turned(q) @ turned(k).transpose(1, 2) / self.size**0.5
                made[f"a{i}.h{j}"] = logits.masked_fill(later, -torch.inf).softmax(-1) @ v @ part(O.T, j)
            writes |= made
            x = seen(f"m{i}", f"{at}.post_attention_layernorm")
            gate, up, down = (self.W[f"{at}.mlp.{name}_proj"] for name in ("gate", "up", "down"))
            writes[f"m{i}"] = (silu(x @ gate.T) * (x @ up.T)) @ down.T
        return seen("output", "model.norm") @ self.W["lm_head"].T, writes


def gradients(model, ends, wanted, way):
    """Place → gradient of the metric at what it reads, averaged over the points of the way from the other input."""
    total = {}
    for share in way:
        places = {}

        def keep(place, x, places=places):
            places[place] = x.clone()
            places[place].retain_grad()
            return places[place]

        start = (ends[0] + share * (ends[1] - ends[0])).requires_grad_()
        output, _ = model.run(start, keep)
        ((output - wanted) ** 2).sum().backward()
        for place, x in places.items():
            total[place] = total.get(place, 0) + x.grad / len(way)
    return total


def scores(folder, method):
    model = Llama(folder / "llama")
    tokens = load_file(folder / "data.safetensors")["tokens"]
    ends = [model.W["model.embed_tokens"][t] for t in (tokens.roll(1, 0), tokens)]
    with torch.no_grad():
        (wanted, after), (_, before) = (model.run(end) for end in ends)
    slopes = gradients(model, ends, wanted, STEPS[method])
    order = list(before)  # a place reads whoever wrote before it: heads of one block do not see each other
    found = []
    for place, slope in slopes.items():
        block = int(place.split(".")[0][1:]) if place != "output" else model.layers
        until = 1 + block * (model.heads + 1) + (model.heads if place.startswith("m") else 0)
        for writer in order[:until]:
            change = ((after[writer] - before[writer]) * slope).sum(dim=(1, 2))
            found.append([writer, place, float(change.abs().mean())])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=STEPS)
    parser.add_argument("suite", type=Path)
    parser.add_argument("edges", type=Path)
    parser.add_argument("--most", type=int, default=None, help="only the first so many stock models")
    asked = parser.parse_args()
    names = json.loads((asked.suite / "suite.json").read_text())["models"]
    names = [name for name in names if name.endswith("-stock")][: asked.most]
    found = {name: scores(asked.suite / "models" / name, asked.method) for name in names}
    asked.edges.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
