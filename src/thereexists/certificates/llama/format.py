"""A stock Llama folder, read without trust: which files there are, and what must be in them.

Everything that a loader looks at is compared. A field of ``config.json`` that is not known here is a fault, for it may
switch on what the proof knows nothing of (biases, other activations, scaled frequencies, code of the folder's own); so
is a file that a loader might prefer to ours. ``thereexists_export.json`` says what is claimed (``claims.py``), in which
dtypes, and the SHA-256 of every file. The claim is checked, not believed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from thereexists.certificates.llama.claims import read_claimed
from thereexists.certificates.llama.layouts import Stock, stock_of
from thereexists.certificates.llama.rounding import DTYPES
from thereexists.certificates.llama.tokens import BOS, EOS, PAD, tokenizer_config_of, tokenizer_of
from thereexists.core.dtypes import as_dtype
from thereexists.core.errors import BadWitnessFile, InvalidInput, Unreadable
from thereexists.core.json_files import MOST_BYTES, malformed, parse_json, read_json, record_digest
from thereexists.core.plain_text import in_full
from thereexists.core.regular_files import file_sha256, read_regular

RECORD = "thereexists_export.json"
FORMAT, OVER_REALS, VERSION = "llama", "llama over reals", 1
CONFIG, GENERATION, WEIGHTS, CARD = "config.json", "generation_config.json", "model.safetensors", "README.md"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
FILES = (CARD, CONFIG, GENERATION, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)
REAL_FILES = (CARD, CONFIG, WEIGHTS)  # of a checkpoint that takes numbers, and has no tokenizer
FIELDS = frozenset(("format", "format_version", "dtype", "compared", "of", "claim", "dtypes", "files", "digest"))
MOST_WEIGHTS = 4 << 30  # bytes
LARGEST = 2.0**24  # of a weight: then nothing on the way comes near the end of float32, used or not
OPTIONAL = {"transformers_version"}  # all that our exports say is needed: older loaders read nothing but rope_theta


@dataclass(frozen=True)
class Shape:
    """The sizes of a stock network."""

    d_model: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head_size: int
    tokens: int
    positions: int

    @property
    def parameters(self) -> int:
        q, k = self.heads * self.head_size, self.key_heads * self.head_size
        layer = (2 * q + 2 * k + 3 * self.width + 2) * self.d_model
        return self.layers * layer + (2 * self.tokens + 1) * self.d_model

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of all weights."""
        d, r, q, k = self.d_model, self.width, self.heads * self.head_size, self.key_heads * self.head_size
        layer = {
            "input_layernorm": (d,),
            "post_attention_layernorm": (d,),
            "self_attn.q_proj": (q, d),
            "self_attn.k_proj": (k, d),
            "self_attn.v_proj": (k, d),
            "self_attn.o_proj": (d, q),
            "mlp.gate_proj": (r, d),
            "mlp.up_proj": (r, d),
            "mlp.down_proj": (d, r),
        }
        found = {f"model.layers.{t}.{name}.weight": size for t in range(self.layers) for name, size in layer.items()}
        ends = {"model.embed_tokens.weight": (self.tokens, d), "lm_head.weight": (self.tokens, d)}
        return found | ends | {"model.norm.weight": (d,)}


@dataclass(frozen=True)
class Checkpoint:
    """What the proof looks at: sizes, the two numbers of the config that are not sizes, weights, and the claim."""

    shape: Shape
    theta: float
    eps: float
    weights: dict[str, torch.Tensor]
    claim: Any  # a ``Claim``, or a ``RealClaim``
    layout: str = "llama"

    def rounded(self, dtype: str) -> dict[str, np.ndarray]:
        """The weights as a run in the dtype has them, in float64."""
        return {name: weight.to(as_dtype(dtype)).double().numpy() for name, weight in self.weights.items()}


def config_of(
    shape: Shape, theta: float, eps: float, dtype: str, layout: str = "llama", speaks: bool = True
) -> dict[str, Any]:
    """What ``config.json`` must say; both spellings of theta, for older and newer loaders. ``speaks``: of tokens."""
    stock = stock_of(layout)
    bos, eos, pad = (BOS, EOS, PAD) if speaks else (None, None, None)
    return {
        "architectures": [stock.architecture],
        "attention_dropout": 0.0,
        "bos_token_id": bos,
        "dtype": dtype,
        "eos_token_id": eos,
        "head_dim": shape.head_size,
        "hidden_act": "silu",
        "hidden_size": shape.d_model,
        "initializer_range": 0.02,
        "intermediate_size": shape.width,
        "max_position_embeddings": shape.positions,
        "model_type": layout,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_heads,
        "pad_token_id": pad,
        "rms_norm_eps": eps,
        "rope_parameters": {"rope_theta": theta, "rope_type": "default", **stock.turning},
        "rope_scaling": None,
        "rope_theta": theta,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": shape.tokens,
        **stock.says(shape),
    }


def generation_of(new_tokens: int) -> dict[str, Any]:
    """What ``generation_config.json`` must say: an answer, and the end of text, by the largest logit."""
    ids = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    return {**ids, "do_sample": False, "max_new_tokens": new_tokens}


def format_of(folder: Path) -> str | None:
    """The format of the stock checkpoint that lies there, one of ``FORMAT`` and ``OVER_REALS``; None: there is none."""
    try:
        found = read_json(folder / RECORD, what="the record of an export").get("format")
    except (BadWitnessFile, AttributeError):
        return None
    return found if found in (FORMAT, OVER_REALS) else None


def read_claim(folder: Path, files: tuple[str, ...] = FILES) -> dict[str, Any]:
    """The record, whole; every file of the folder has the SHA-256 that it states."""
    record = read_json(folder / RECORD, what="the record of an export")
    if not isinstance(record, dict) or record.keys() != FIELDS:
        raise BadWitnessFile(f"{folder / RECORD} was truncated or changed: it holds {', '.join(sorted(FIELDS))}.")
    if record["format_version"] != VERSION:
        raise Unreadable(f"{folder / RECORD} has another format version; this package reads {VERSION}.")
    if record["digest"] != record_digest(record):
        raise BadWitnessFile(f"{folder / RECORD} was changed after it was written: its digest does not match.")
    with malformed(folder / RECORD):
        if record["files"].keys() != set(files):
            raise InvalidInput(f"it must state the SHA-256 of {', '.join(files)}")
        dtypes = record["dtypes"]
        if dtypes != [name for name in DTYPES if name in dtypes] or not dtypes:
            raise InvalidInput(f"the dtypes of a claim must be some of {', '.join(DTYPES)}")
    more = sorted({file.name for file in folder.iterdir() if not file.name.startswith(".")} - {*files, RECORD})
    if more:
        raise BadWitnessFile(f"{folder} holds {more[0]} too, which a loader may prefer; it is not part of the claim.")
    for name, sha256 in record["files"].items():
        if file_sha256(folder / name) != sha256:
            raise BadWitnessFile(f"{folder / name} was truncated or changed: its SHA-256 is not the one stated.")
    return record


def read_checkpoint(folder: Path, record: dict[str, Any]) -> Checkpoint:
    """Config, weights and what they are about; each file is read once, and is what the record states."""
    with malformed(folder, "is not a complete checkpoint"):
        claim = read_claimed(record["claim"])
        vocabulary = claim.vocabulary
        found = read_network(folder, record, claim)
        if found.shape.tokens != len(vocabulary):
            raise InvalidInput(f"the config has {found.shape.tokens} tokens; the vocabulary has {len(vocabulary)}")
        positions = found.shape.positions
        _compare(
            GENERATION, _read(folder, GENERATION, record), generation_of(claim.new_tokens), {"transformers_version"}
        )
        _compare(TOKENIZER, _read(folder, TOKENIZER, record), tokenizer_of(vocabulary), set())
        _compare(TOKENIZER_CONFIG, _read(folder, TOKENIZER_CONFIG, record), tokenizer_config_of(positions), set())
    return found


def read_network(
    folder: Path, record: dict[str, Any], claim: Any, speaks: bool = True, largest: float = LARGEST
) -> Checkpoint:
    """Config and weights; no weight may be beyond ``largest``."""
    config = _read(folder, CONFIG, record)
    shape = _shape(config)
    rope = config["rope_parameters"]
    theta, eps = rope["rope_theta"], config["rms_norm_eps"]
    if type(theta) is not float or not 1 < theta < 1e12 or type(eps) is not float or not 0 <= eps < 1:
        raise InvalidInput("rope_theta must be a number above 1, and rms_norm_eps a number below 1")
    layout = config["model_type"]
    _compare(CONFIG, config, config_of(shape, theta, eps, record["dtype"], layout, speaks), OPTIONAL)
    weights = _weights(folder, record, shape, stock_of(layout), largest)
    return Checkpoint(shape, theta, eps, weights, claim, layout)


def _bytes(folder: Path, name: str, record: dict[str, Any], most: int) -> bytes:
    """The very bytes whose hash is stated."""
    found = read_regular(folder / name, most)
    if hashlib.sha256(found).hexdigest() != record["files"][name]:
        raise BadWitnessFile(f"{folder / name} was changed while it was read.")
    return found


def _read(folder: Path, name: str, record: dict[str, Any]) -> Any:
    return parse_json(_bytes(folder, name, record, MOST_BYTES), str(folder / name))


def _shape(config: dict[str, Any]) -> Shape:
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    sizes = [config[name] for name in (*names, "head_dim", "vocab_size", "max_position_embeddings")]
    if not all(type(size) is int and 1 <= size < 1 << 24 for size in sizes):
        raise InvalidInput("a size of the config is not a whole number")
    shape = Shape(*sizes)
    size = shape.head_size  # of other sizes inverse frequencies are off by more than is assumed
    if shape.heads % shape.key_heads or size < 2 or size & (size - 1) or shape.layers > 64:
        raise InvalidInput(
            "heads must come in groups of equal size, the size of a head must be a power of two, and layers must be at "
            "most 64"
        )
    return shape


def _compare(name: str, found: Any, wanted: dict[str, Any], optional: set[str]) -> None:
    """Field by field, and of the same type: True is not 1."""
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} is not an object")
    for field in sorted(found.keys() | wanted.keys()):
        if field in optional and (field not in found or field == "transformers_version"):
            continue
        if field not in found or field not in wanted:
            said = "is missing" if field in wanted else "is not known"
            raise InvalidInput(f"{field} of {name} {said}")
        if _typed(found[field]) != _typed(wanted[field]):
            raise InvalidInput(f"{field} of {name} is {str(found[field])[:60]!r}, not {str(wanted[field])[:60]!r}")


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _typed(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_typed(part) for part in value]
    return type(value), value


def _weights(
    folder: Path, record: dict[str, Any], shape: Shape, stock: Stock, largest: float
) -> dict[str, torch.Tensor]:
    if 2 * shape.parameters > MOST_WEIGHTS:
        raise InvalidInput(f"{shape.parameters:,} parameters are more than this verifier reads")
    try:
        stored = _bytes(folder, WEIGHTS, record, MOST_WEIGHTS)
        weights = load_tensors(stored)
    except SafetensorError as error:
        raise BadWitnessFile(f"{folder / WEIGHTS} cannot be read: {error}") from error
    about = parse_json(stored[8 : 8 + int.from_bytes(stored[:8], "little")], WEIGHTS).get("__metadata__")
    if about != {"format": "pt"}:
        raise InvalidInput("the weights are not marked as those of PyTorch, so a loader may transpose them")
    wanted, dtype = stock.stored(shape.weights()), as_dtype(record["dtype"])
    if weights.keys() != wanted.keys():
        raise InvalidInput(f"the weights are not those of the config: {min(weights.keys() ^ wanted.keys())}")
    for name, weight in weights.items():
        if tuple(weight.shape) != wanted[name] or weight.dtype != dtype:
            raise InvalidInput(f"{name} is {tuple(weight.shape)} of {weight.dtype}, not {wanted[name]} of {dtype}")
        if not bool((weight.abs() <= largest).all()):
            raise InvalidInput(f"{name} has a weight beyond {in_full(largest)}, or one that is not a number")
    return stock.read(weights, shape.weights())
