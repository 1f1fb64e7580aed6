"""Two circuit-finding methods on a suite: ``python benchmarks/circuits.py METHOD bench/ edges.json [--most 40]``.

Run it with the Python of an environment that has TransformerLens before 4 (3.9 here); this package is not needed there.

    eap      edge attribution patching (Syed et al., arXiv 2310.10348): the change of a writer's output between two
             inputs, times the gradient of the metric at the reader's input: one backward pass for all edges
    eap-ig   with integrated gradients (Hanna et al., arXiv 2403.17806): gradients averaged on the way between them

The metric is the squared distance to the outputs on the other inputs. Scores go to ``thereexists suite score bench/
edges.json``, which takes the best edges, as many as the circuit needs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformer_lens import HookedTransformer, HookedTransformerConfig  # pyright: ignore[reportMissingImports]

STEPS = {"eap": (1.0,), "eap-ig": tuple((k + 0.5) / 8 for k in range(8))}


def loaded(folder):
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = getattr(torch, config["dtype"])
    more = {"use_split_qkv_input": True, "use_hook_mlp_in": True, "use_attn_result": True}
    model = HookedTransformer(HookedTransformerConfig.from_dict(config | more))
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    return model


def writers(cache, model):
    """Component → what it writes (batch, n, d)."""
    found = {"input": cache["hook_embed"] + cache["hook_pos_embed"]}
    for i in range(model.cfg.n_layers):
        result = cache[f"blocks.{i}.attn.hook_result"]
        found |= {f"a{i}.h{j}": result[:, :, j] for j in range(model.cfg.n_heads)}
        found[f"m{i}"] = cache[f"blocks.{i}.hook_mlp_out"]
    return found


def gradients(model, tokens, other, wanted, way):
    """Place → gradient of the metric at what it reads, averaged over the points of the way from the other input."""
    total, last = {}, f"blocks.{model.cfg.n_layers - 1}.hook_resid_post"

    def reads(name):
        return name.endswith(("hook_q_input", "hook_k_input", "hook_v_input", "hook_mlp_in")) or name == last

    ends = [model.embed(t).detach() for t in (other, tokens)]
    for share in way:
        seen = {}

        def keep(value, hook, seen=seen):
            value.retain_grad()
            seen[hook.name] = value

        def between(value, hook, share=share):
            return (ends[0] + share * (ends[1] - ends[0])).requires_grad_()

        output = model.run_with_hooks(tokens, fwd_hooks=[("hook_embed", between), (reads, keep)])
        ((output - wanted) ** 2).sum().backward()
        for i in range(model.cfg.n_layers):
            for letter in "qkv":
                gradient = seen[f"blocks.{i}.hook_{letter}_input"].grad
                for j in range(model.cfg.n_heads):
                    name = f"a{i}.h{j}.{letter}"
                    total[name] = total.get(name, 0) + gradient[:, :, j] / len(way)
            total[f"m{i}"] = total.get(f"m{i}", 0) + seen[f"blocks.{i}.hook_mlp_in"].grad / len(way)
        total["output"] = total.get("output", 0) + seen[last].grad / len(way)
    return total


def edges(model):
    """Every edge that the architecture has, as the suite names them."""
    there = ["input"]
    for i in range(model.cfg.n_layers):
        heads = [f"a{i}.h{j}" for j in range(model.cfg.n_heads)]
        yield from ((writer, f"{head}.{way}") for head in heads for way in "qkv" for writer in there)
        there += heads
        yield from ((writer, f"m{i}") for writer in there)
        there.append(f"m{i}")
    yield from ((writer, "output") for writer in there)


def scores(folder, method):
    model = loaded(folder)
    tokens = load_file(folder / "data.safetensors")["tokens"]
    other = tokens.roll(1, 0)
    with torch.no_grad():
        wanted, corrupt = model.run_with_cache(other)
        _, clean = model.run_with_cache(tokens)
    before, after = writers(clean, model), writers(corrupt, model)
    slopes = gradients(model, tokens, other, wanted, STEPS[method])
    found = []
    for writer, place in edges(model):
        change = ((after[writer] - before[writer]) * slopes[place]).sum(dim=(1, 2))
        found.append([writer, place, float(change.abs().mean())])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=STEPS)
    parser.add_argument("suite", type=Path)
    parser.add_argument("edges", type=Path)
    parser.add_argument("--most", type=int, default=None, help="only the first so many models")
    asked = parser.parse_args()
    names = json.loads((asked.suite / "suite.json").read_text())["models"][: asked.most]
    names = [name for name in names if not name.endswith("-stock")]  # those: stock_circuits.py
    found = {name: scores(asked.suite / "models" / name, asked.method) for name in names}
    asked.edges.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
