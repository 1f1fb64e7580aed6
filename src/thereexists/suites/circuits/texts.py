"""What lies beside the models: a page that explains them, and the schema of circuit.json."""

from __future__ import annotations

from typing import Any

README = """# Models with known circuits

Small Transformers that compute a known program, exactly or within a certified bound. All files can be used without the
package that made them.

    models/NAME/config.json, model.safetensors   a model of TransformerLens' own architecture: no normalisation, ReLU,
                                                 attention both ways, 17 tokens that stand for 0, 1/16, …, 1
    models/NAME/circuit.json                     the circuit: components, operations, edges (circuit.schema.json)
    models/NAME/program.py, program.txt          the program in NumPy, and in words; a pair has two (…_second)
    models/NAME/data.safetensors                 tokens, outputs, and every value of the program on them
    models/NAME/witness/                         the compiled network with its certificate
    suite.json                                   seed, names, and the SHA-256 of every file

To load one, in its folder, with TransformerLens 4 (4.3 was tried):

    import json, torch
    from safetensors.torch import load_file
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    config = json.load(open("config.json"))
    config["dtype"] = getattr(torch, config["dtype"])
    model = TransformerBridge.boot_native(config, dtype=config["dtype"])
    model.load_state_dict(convert_tl_checkpoint(load_file("model.safetensors"), model.cfg))

or with TransformerLens 3 (3.9 was tried):

    import json, torch
    from safetensors.torch import load_file
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    config = json.load(open("config.json"))
    config["dtype"] = getattr(torch, config["dtype"])
    model = HookedTransformer(HookedTransformerConfig.from_dict(config))
    model.load_state_dict(load_file("model.safetensors"), strict=False)    # only the masks are not in the file

Then `model(load_file("data.safetensors")["tokens"])` are the outputs, (batch, 6, outputs).

Components that write: `input` (embedding and positions), `a0.h1` (head 1 of block 0), `m0` (its feed-forward half).
Places that read: `a0.h1.q`, `a0.h1.k`, `a0.h1.v`, `m0`, `output`. An edge is in the circuit if it carries a value that
the place reads. `effect`: the largest change of an output if this edge alone is given what it carries for other
inputs. An edge that is not `needed` (its effect is 0) counts neither for nor against a method.

To score a method, write a JSON file {"NAME": [["input", "m0"], …], …}: the edges that it finds, for each model; a third
entry of an edge is its score, for methods that rank.
"""

CIRCUIT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "circuit.json of a model with a known circuit",
    "type": "object",
    "required": ["name", "dress", "programs", "dtype", "components", "edges"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "dress": {"enum": ["plain", "turned", "distractors", "pair"]},
        "dtype": {"enum": ["float32", "float64"]},
        "programs": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "object", "required": ["name", "op", "of"]}},
        },
        "components": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["operations", "units"],
                "properties": {
                    "operations": {"type": "array", "items": {"type": "string"}},
                    "units": {
                        "type": "object",
                        "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                        "description": "of a feed-forward half: operation → hidden units",
                    },
                },
            },
        },
        "edges": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["from", "to", "carries", "effect", "needed"],
                "additionalProperties": False,
                "properties": {
                    "from": {"type": "string"},
                    "to": {"type": "string"},
                    "carries": {"type": "array", "items": {"type": "string"}},
                    "effect": {"type": "number"},
                    "needed": {"type": "boolean"},
                },
            },
        },
    },
}
