"""What lies beside the models: a page that explains them, and the schema of circuit.json."""

from __future__ import annotations

import json
from typing import Any

README = """# Models with known circuits

Small Transformers that compute a known program, exactly or within a certified bound. All files can be used without the
package that made them.

    models/NAME/config.json, model.safetensors   a model of TransformerLens' own architecture: no normalisation, ReLU,
                                                 attention both ways, 17 tokens that stand for 0, 1/16, …, 1
    models/NAME/circuit.json                     the circuit: components, operations, edges (circuit.schema.json)
    models/NAME/program.py, program.txt          the program in NumPy, and in words; also …_second, …_third
    models/NAME/data.safetensors                 tokens, outputs, and every value of the program on them
    models/NAME/witness/                         the compiled network with its certificate
    models/NAME/superposition.json               instead of it, in a model whose values share rows of the residual
                                                 stream: the direction of every value, and what is proved
    models/NAME-stock/llama/                     instead of config.json, model.safetensors and witness/: an unmodified
                                                 LlamaForCausalLM folder, with its proof (see below)
    suite.json                                   seed, names, and the SHA-256 of every file
    *.schema.json                                the JSON schemas: suite, circuit, superposition, and edges, a method's
                                                 answers

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

**Stock models** (`NAME` ends in `-stock`) are Llama folders of causal programs over the letters a, b, c. `transformers`
loads them, and TransformerLens 3.9 and 4.3 do by their path. To load one, in its folder, with either of them:

    import torch
    from safetensors.torch import load_file
    from transformer_lens.model_bridge import TransformerBridge

    model = TransformerBridge.boot_transformers("llama", device="cpu", dtype=torch.float32)

The data hold `tokens` (64, 7), `<s>` first, and `answers` (64, 6): behind every letter the token with the largest
logit, `model(tokens)[:, 1:].argmax(-1)`. Values are numbers of letters, or flags. Nothing is hidden in these models:
each row of the residual stream is a bit. For every component circuit.json lists the rows that it writes:

    {"row": 12, "value": "x 1 back", "is": ["a"]}     1 where the letter one token back is an a, else 0
    "v3.1"                                            a value inside the operation that makes v3
    "v2 for b in the last 4"                          what the look-up v2 remembers for the letter b
    "start", "position", "constant"                   the mark of <s>, the number of the token, 4096

`steps` says of each step of the program which components write rows of its value, `in`; or, if it has none, of which
values it is a part, for operations on what stands at one token are done at once. A head or a unit that is not named
writes nothing. Heads of one group share their keys and values; an edge to `a0.h1.k` is what that head alone sees there,
and each place normalises what it sees. The output is all logits, and `effect` the largest change of one.

Components that write: `input` (embedding and positions), `a0.h1` (head 1 of block 0), `m0` (its feed-forward half).
Places that read: `a0.h1.q`, `a0.h1.k`, `a0.h1.v`, `m0`, `output`. An edge is in the circuit if it carries a value that
the place reads. `effect`: the largest change of an output if this edge alone is given what it carries for other
inputs. An edge that is not `needed` (its effect is 0) counts neither for nor against a method.

To score a method, write a JSON file {"NAME": [["input", "m0"], …], …}: the edges that it finds, for each model; a third
entry of an edge is its score, for methods that rank.
"""

_ROW: dict[str, Any] = {
    "type": "object",
    "required": ["row", "value", "is"],
    "additionalProperties": False,
    "properties": {
        "row": {"type": "integer", "minimum": 0},
        "value": {"type": "string", "description": "a value of the program, and of which token"},
        "is": {"type": "array", "items": {"type": "string"}, "description": "the row is 1 where it is one of these"},
    },
}

CIRCUIT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "circuit.json of a model with a known circuit",
    "type": "object",
    "required": ["name", "dress", "programs", "dtype", "components", "edges"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "dress": {"enum": ["plain", "turned", "distractors", "pair", "superposed", "stock"]},
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
                    "rows": {
                        "type": "array",
                        "items": _ROW,
                        "description": "of a stock model: every row of the residual stream that it writes",
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
        "steps": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["in", "part_of"],
                "additionalProperties": False,
                "properties": {
                    "in": {"type": "array", "items": {"type": "string"}, "description": "who writes rows of its value"},
                    "part_of": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "if it has none: the values with which it is computed at once",
                    },
                },
            },
            "description": "of a stock model: where each step of the program is computed",
        },
    },
    "if": {"properties": {"dress": {"const": "stock"}}},
    "then": {
        "required": ["steps"],
        "properties": {"components": {"additionalProperties": {"required": ["rows"]}}},
    },
}

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

SUITE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "suite.json of a circuit suite",
    "type": "object",
    "required": ["format", "version", "package_version", "seed", "count", "models", "files"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": "thereexists circuit suite"},
        "version": {"const": 1},
        "package_version": {"type": "string"},
        "seed": {"type": "integer", "minimum": 0},
        "count": {"type": "integer", "minimum": 1},
        "models": {"type": "array", "items": {"type": "string"}, "description": "folders of models/"},
        "files": {"type": "object", "additionalProperties": _HASH, "description": "SHA-256 of every other file"},
    },
}

_DIRECTION = {"type": "array", "items": {"type": "number"}}

SUPERPOSITION_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "superposition.json of a model whose values share rows",
    "type": "object",
    "required": ["values", "rows", "interference", "error", "directions"],
    "additionalProperties": False,
    "properties": {
        "values": {"type": "integer", "description": "flags that live in the shared rows"},
        "rows": {"type": "integer", "description": "how many rows they share: 7, 8, … of the residual stream"},
        "interference": {
            "type": "number",
            "description": "the largest product of two directions",
        },
        "error": {"const": 0.0, "description": "of every output, for every input: tried for all pairs of tokens"},
        "directions": {"type": "object", "additionalProperties": _DIRECTION, "description": "value → direction"},
    },
}

_EDGE: dict[str, Any] = {
    "type": "array",
    "prefixItems": [{"type": "string"}, {"type": "string"}, {"type": "number"}],
    "minItems": 2,
    "maxItems": 3,
}

EDGES_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "what a method finds: model → edges [from, to], or [from, to, score]",
    "type": "object",
    "additionalProperties": {"type": "array", "items": _EDGE},
}

SCHEMAS = {
    "suite": SUITE_SCHEMA,
    "circuit": CIRCUIT_SCHEMA,
    "superposition": SUPERPOSITION_SCHEMA,
    "edges": EDGES_SCHEMA,
}


def pages() -> dict[str, str]:
    """The files that every suite has, whatever its seed."""
    return {"README.md": README} | {
        f"{name}.schema.json": json.dumps(s, indent=1) + "\n" for name, s in SCHEMAS.items()
    }
