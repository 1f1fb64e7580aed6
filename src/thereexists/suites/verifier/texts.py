"""What lies beside the instances: a page that explains them, and the schemas of the two JSON files."""

from __future__ import annotations

import json
from typing import Any

README = """# Verification problems with known answers

Networks (ONNX) and properties (VNN-LIB 1.0) in the layout of VNN-COMP. All files can be used without the package that
made them.

    instances.csv      onnx file, vnnlib file, time-out in seconds: one line for each instance
    onnx/              the networks: MatMul, Add, Relu, Softmax, Transpose; opset 13, float32, static shapes, batch 1
    vnnlib/            the properties: bounds on X (one box, or several in an `or`), and which Y are unsafe
    truth/truth.json   the verdicts. Keep it away from the tool that you score
    suite.json         seed, counts, and the SHA-256 of every file, the truth's among them
    *.schema.json      the JSON schemas of suite.json and truth.json

A property is violated (`sat`) if some input in a box has an unsafe output. It holds (`unsat`) if none has. X_i and Y_i
are the inputs and outputs in the order of the flattened arrays (1, tokens, features).

The verdict is about the network in real arithmetic, with the weights as they are in the file: each is one float32
array, or two or three (names that end in .a, .b, .c) that are applied one by one and add up. Softmax weights below
1e-300 count as 0. `margin`: by how much the limit would have to move before the verdict changes, at least. `float32`:
how far ONNX Runtime was from the function on 10,000 inputs, rounded up to a power of ten; that figure is measured.

A `sat` instance has a `counterexample`: all X in order. It was run in ONNX Runtime in float32 and in float64.
`family`, `level` (1 easy … 5 hard), `params` and `disguise` say how an instance was made.

To score a tool, write a CSV file with a line `onnx,vnnlib,result,seconds,counterexample` for each instance: result is
sat, unsat, unknown, timeout or error; counterexample is the name of a file beside the CSV file, or nothing; the name of
the vnnlib file is the key into truth.json. A counterexample has the form of VNN-COMP, ((X_0 0.25) (X_1 0.5) … (Y_0 …)).
Run the network on it: a `sat` whose input is outside of the boxes, or has a safe output, is wrong (1e-6 is allowed).
"""

_NUMBER = {"type": "number"}
_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

SUITE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "suite.json of a verifier suite",
    "type": "object",
    "required": ["format", "version", "package_version", "seed", "count", "sat", "unsat", "families", "files"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": "thereexists verifier suite"},
        "version": {"const": 1},
        "package_version": {"type": "string"},
        **{name: {"type": "integer", "minimum": 0} for name in ("seed", "count", "sat", "unsat")},
        "families": {"type": "array", "items": {"type": "string"}},
        "files": {"type": "object", "additionalProperties": _HASH, "description": "SHA-256 of every other file"},
    },
}

_INSTANCE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "description": "onnx/NAME.onnx and vnnlib/NAME.vnnlib"},
        "verdict": {"enum": ["sat", "unsat"]},
        "margin": {
            **_NUMBER,
            "exclusiveMinimum": 0,
            "description": "what the limit may move before the verdict changes",
        },
        "family": {"type": "string"},
        "level": {"type": "integer", "minimum": 1, "maximum": 5},
        "params": {"type": "object", "description": "of the function, by family"},
        "disguise": {
            "type": "object",
            "required": ["seed", "worn", "split"],
            "properties": {
                "seed": {"type": "array", "items": {"type": "integer"}},
                "worn": {
                    "type": "boolean",
                    "description": "residual stream rotated, units and heads permuted and scaled",
                },
                "split": {"type": "boolean", "description": "weights written as sums"},
            },
        },
        "bound": {**_NUMBER, "minimum": 0, "description": "|network − function| in real arithmetic, proved"},
        "extremes": {"type": "array", "items": _NUMBER, "description": "of the output, one for each unsafe half-space"},
        "proof": {"type": "string"},
        "counterexample": {"type": ["array", "null"], "items": _NUMBER, "description": "all X; null if it holds"},
        "timeout": {"type": "integer"},
        "float32": {**_NUMBER, "description": "largest |ONNX Runtime − function| seen, rounded up"},
    },
}
_INSTANCE["required"] = list(_INSTANCE["properties"])

TRUTH_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "truth.json of a verifier suite",
    "type": "object",
    "required": ["instances"],
    "additionalProperties": False,
    "properties": {"instances": {"type": "array", "items": _INSTANCE}},
}


def pages() -> dict[str, str]:
    """The files that every suite has, whatever its seed."""
    schemas = {"suite": SUITE_SCHEMA, "truth": TRUTH_SCHEMA}
    return {"README.md": README} | {
        f"{name}.schema.json": json.dumps(s, indent=1) + "\n" for name, s in schemas.items()
    }
