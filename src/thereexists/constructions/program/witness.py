"""A witness of a program: the network, the program it computes, and the certificate that says how well.

What every compiled program has is in ``CompiledWitness``: one over symbols (``constructions/symbols/``) is that too.

witness = te.build(P.sort(P.tokens(64)), dtype="float32")
witness.certificate.bound  # sup norm, over the whole box, rounding included
witness(x), witness.to("bfloat16"), witness.save("w"), te.load("w"), te.verify("w"), te.export(witness, "onnx", "o")
"""

from __future__ import annotations

import dataclasses
import secrets
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch

from thereexists.arithmetic.simplest import simplest
from thereexists.certificates.certificate import FILE, load_certificate
from thereexists.certificates.llama.reals.claim import RealClaim, real_claim
from thereexists.certificates.program_bound import rounding_of_a_file
from thereexists.certificates.program_certificate import CompiledCertificate
from thereexists.certificates.program_limits import check_program
from thereexists.certificates.program_places import check_name, check_places
from thereexists.constructions.program.compiler import check_inputs, interpret
from thereexists.constructions.program.graph import Value
from thereexists.constructions.program.plan import ProgramPlan
from thereexists.constructions.program.saving import from_record as value_of
from thereexists.constructions.program.tracing import ProgramTrace, trace_rows
from thereexists.core import storage
from thereexists.core.authors_word import WORDS
from thereexists.core.dtypes import DTYPES, as_dtype, dtype_name
from thereexists.core.errors import BadWitnessFile, CannotBuild, InvalidInput, ThereExistsError
from thereexists.core.json_files import malformed
from thereexists.core.kinds import KINDS
from thereexists.core.rounded_figures import rounded_up
from thereexists.core.verdict import Verdict
from thereexists.functions.target import Array
from thereexists.model import EmbeddedTransformer
from thereexists.model.digest import known_sha256, weights_sha256
from thereexists.witness.inputs import real_inputs
from thereexists.witness.witness import Samples, Witness, require_float64

_SAMPLES = 1024
_SAMPLE_WORK = 1 << 27


@dataclasses.dataclass(frozen=True, repr=False)
class CompiledWitness(Witness):
    """A program over numbers in a network, whatever the numbers stand for.

    ``made``: the certificate that was made, or read, with it.

    ``places``: which operation lives in which block, half and row, as ``show`` prints it.

    ``written``: the program as plain data; of a file, as it stands there. It is saved and certified as it was read.

    ``read``: certificate and dtypes come from a file, its author's word. A dtype is proved when it is asked for.

    ``name``: what its author calls the program; "" if nothing. It proves nothing and is only shown.

    ``rounded``: the hash of its weights, if they were rounded to another dtype; "" if not.
    """

    network: EmbeddedTransformer
    program: Value
    source: Value
    places: tuple[dict[str, Any], ...]
    made: CompiledCertificate | None
    written: dict[str, Any]
    read: bool = False
    name: str = ""
    rounded: str = ""

    def __post_init__(self) -> None:
        if self.made is not None and not self.made.means(self.written):  # as after the program was replaced
            object.__setattr__(self, "made", None)

    @property
    def certificate(self) -> CompiledCertificate | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What was proved of these weights, or of the float64 weights that they were rounded from."""
        about = self.made is not None and known_sha256(self.network) in (self.made.weights_sha256, self.rounded)
        return self.made if about else None

    @property
    def n(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.program.n

    @property
    def plan(self) -> ProgramPlan:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ProgramPlan.of(self.network, self.certificate, self.construction)

    @property
    def d(self) -> int:
        return self.source.d

    def checked_input(self, x: Any) -> tuple[Array, bool]:
        X = real_inputs(x, self.n, self.d)
        single = X.ndim == 2
        if X.ndim == 3 and len(X) == 0:
            raise InvalidInput(f"The input must hold at least one sequence; got the shape {X.shape} instead.")
        return check_inputs(self.source, X[None] if single else X), single

    def run(self, X: Array) -> Array:
        """The network on a checked batch, in its own dtype; float64 out. Shorter sequences are padded and flagged."""
        return self.network.run(self.padded(X))[:, : X.shape[1]]

    def padded(self, X: Array) -> Array:
        """What the network itself takes: n tokens, for missing ones the simplest number of the box; and, if it has

        one feature more than the program, a flag that is 1 at the tokens that are there.
        """
        if not self.shorter:
            return np.ascontiguousarray(X)
        missing = ((0, 0), (0, self.n - X.shape[1]), (0, 0))
        full = np.pad(X, missing, constant_values=simplest(self.source.settings["low"], self.source.settings["high"]))
        if self.network.W_in is None or self.network.W_in.shape[1] == self.d:
            return full
        return np.concatenate([full, np.pad(np.ones((*X.shape[:2], 1)), missing)], axis=2)

    @property
    def shorter(self) -> bool:
        """Whether sequences of fewer than n tokens are allowed."""
        return bool(self.source.settings.get("shorter"))

    def interpret(self, X: Array) -> Array:
        """The program itself on arrays; of a loaded witness with functions of your own, their splines."""
        X = check_inputs(self.source, X)
        if not self.read:
            return interpret(self.program, X)
        with malformed("The stored program", "cannot be interpreted"):
            return interpret(self.program, X)

    def to(self, dtype: torch.dtype | str) -> Self:
        """The witness in another dtype. One without a certified bound is refused, with the reason."""
        wanted = as_dtype(dtype)
        name = dtype_name(wanted)
        if wanted == self.network.dtype:
            return self
        if self.network.dtype != torch.float64:
            raise CannotBuild(
                f"Only the float64 original converts safely; this is in {self.network.dtype}: load again."
            )
        if self.certificate is None or name not in self.certificate.bounds or name not in self.network.safe:
            reasons = {} if self.certificate is None else self.certificate.reasons
            why = reasons.get(name, "it has no certified bound.")
            raise CannotBuild(f"This witness is not certified in {name}: {why}")
        self.proved_rounding(name)
        converted = self.network.rounded(wanted)
        return dataclasses.replace(self, network=converted, rounded=weights_sha256(converted))

    def proved_rounding(self, name: str) -> float:
        """How far the run in a dtype may be from exact arithmetic. What a file says of it is proved, or refused.

        Only float64 weights can be proved: a witness in another dtype was proved when it was converted.
        """
        certificate = self.certificate
        if certificate is None:
            raise CannotBuild(f"This witness is not certified in {name}: it has no certificate of this program.")
        figures = certificate.bounds[name]
        if not self.read or self.network.dtype != torch.float64:
            return figures["rounding"]
        try:
            found = rounding_of_a_file(self.record(), self.network, name, certificate.whole)
        except ThereExistsError as error:
            raise CannotBuild(f"This witness is not proved safe in {name}, whatever its author says: {error}") from None
        stated = min(figures["rounding"], figures["bound"])
        if not found <= stated:
            raise CannotBuild(
                f"This witness is not proved safe in {name}: its author says that rounding is at most "
                f"{rounded_up(stated, 3)}, but what is proved is {rounded_up(found, 3)}. Make a certificate of your "
                "own with `thereexists certify`."
            )
        return figures["rounding"]

    def samples(self) -> Samples:
        """Random inputs, ends and ties. A stranger's run and ours are both within the rounding of the same reals."""
        if self.certificate is None:
            raise CannotBuild("A program is exported with its certificate: make it with `thereexists certify`.")
        dtype = dtype_name(self.network.dtype)
        if dtype not in self.certificate.bounds:
            raise CannotBuild(f"A program is exported in a dtype that it is certified in; {dtype} has no bound.")
        rng = np.random.default_rng(secrets.randbits(64))
        n, low, high = self.n, self.source.settings["low"], self.source.settings["high"]
        count = int(min(_SAMPLES, max(4, _SAMPLE_WORK // (n * n * max(self.network.depth, 1)))))
        unit = rng.random((count, n, self.d))
        unit[::4] = rng.integers(0, 3, unit[::4].shape) / 2
        inputs = low + (high - low) * unit
        inputs = np.rint(inputs) if self.certificate.whole else inputs
        # Numbers of the dtype: what others round on the way, in two steps perhaps, would be another input.
        inputs = torch.from_numpy(inputs).to(self.network.dtype).double().numpy()
        parts = []
        for start in range(0, count, 64):
            length = int(rng.integers(1, n + 1)) if self.shorter and start else n
            part = inputs[start : start + 64, :length]
            parts.append((self.padded(part), self.run(part)))
        allowed = 2.0 * self.proved_rounding(dtype)
        return Samples(tuple(parts), "random inputs", allowed)

    def verdicts(self) -> dict[str, Verdict]:
        certificate = self.certificate
        if certificate is None:
            return {name: Verdict(None, ("it has no certificate of this program",)) for name in DTYPES}
        if self.read:
            return {name: self._read_verdict(name) for name in DTYPES}
        held = {name: f"sup norm ≤ {rounded_up(part['bound'], 3)}" for name, part in certificate.bounds.items()}
        why = certificate.reasons
        return {name: Verdict(name in held, (held.get(name) or why.get(name, "no bound"),)) for name in DTYPES}

    def _read_verdict(self, name: str) -> Verdict:
        """Of a file: that the run in a dtype is near the network in exact arithmetic can be proved at once."""
        if self.certificate is None or name not in self.certificate.bounds:
            return Verdict(None, ("its author states no bound",))
        try:
            return Verdict(True, (f"rounding ≤ {rounded_up(self.proved_rounding(name), 3)}",))
        except ThereExistsError as error:
            return Verdict(None, (str(error),))

    def safe(self) -> tuple[str, ...]:
        """Of a file only the dtype it is in: that one was proved, or is before anything is exported."""
        return (dtype_name(self.network.dtype),) if self.read else super().safe()

    def listing(self) -> str:
        """Which operation lives in which block, half and row."""
        lines = []
        for place in self.places:
            where = "embedding" if place["block"] == 0 else f"block {place['block']} {place['half']}"
            made = ", ".join(f"{name} → row {row}" for name, row in place["made"])
            lines.append(f"{where}: {made}")
        return "\n".join(lines)

    def describe(self) -> dict[str, Any]:
        """Plain data about the witness, as ``build --json`` gives it."""
        certificate = self.certificate
        return {
            "kind": self.construction,
            "name": self.name,
            "operation": self.program.operation,
            "n": self.n,
            "d": self.d,
            "outputs": self.program.d,
            "box": [self.source.settings["low"], self.source.settings["high"]],
            **self.blocks(),
            "bound": None if certificate is None else certificate.bound,
            "bound_dtype": None if certificate is None else certificate.dtype,
            "bounds": {} if certificate is None else {k: v["bound"] for k, v in certificate.bounds.items()},
            "reasons": {} if certificate is None else certificate.reasons,
            "parts": {} if certificate is None else certificate.parts,
            "assumptions": [] if certificate is None else certificate.assumptions,
        }

    def to_compute(self) -> dict[str, Any]:
        return self.record()

    def record(self) -> dict[str, Any]:
        """The program as plain data."""
        return self.written

    def contents(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        require_float64(self.network)
        named = {"name": self.name} if self.name else {}
        return {"program": self.record(), "places": list(self.places), **named}, {}

    def save(self, path: str | Path) -> None:
        """Write the directory ``path`` (model.safetensors, witness.json, certificate.json), in float64."""
        super().save(path)
        if self.certificate is not None:
            self.certificate.save(path)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class ProgramWitness(CompiledWitness):
    """Of a program over the reals."""

    construction = "program"

    def lowerable(self) -> RealClaim:
        """The program as it is saved; refused, with the operation, where a checkpoint cannot run it."""
        return real_claim(self.record())

    def __call__(self, x: Any) -> Any:
        """Run on (batch, n, d) or one sequence (n, d); NumPy in NumPy out, torch in torch out."""
        if isinstance(x, torch.Tensor):
            return torch.from_numpy(self(real_inputs(x, self.n, self.d))).to(x.device)
        X, single = self.checked_input(x)
        Y = self.run(X)
        return Y[0] if single else Y

    def trace(self, x: Any) -> ProgramTrace:
        """Every value that some operation leaves in a row, after the half block that makes it."""
        X, _ = self.checked_input(x)
        if len(X) != 1:
            raise InvalidInput(f"trace takes one sequence; this input holds {len(X)}.")
        return trace_rows(self, X[0])

    def facts(self) -> list[str]:
        certificate = self.certificate
        bound = "not certified"
        if certificate is not None:
            bound = f"sup norm ≤ {rounded_up(certificate.bound, 3)} in {certificate.dtype}"
        claim = f"{self.name or self.program.operation}, n = {self.n}, d = {self.d}: {bound}"
        return [f"{WORDS}: {claim}" if self.read or (certificate is not None and certificate.stated) else claim]


def load_program(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> ProgramWitness:
    """A saved program; its functions come back by name or as splines, never as code."""
    return ProgramWitness(**read_compiled(path, record, weights), read=True)


def read_compiled(path: str | Path, record: dict[str, Any], weights: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The parts of a witness that every compiled program has."""
    try:
        storage.check_dtype(record, weights)
        network = EmbeddedTransformer.from_structure(record["structure"], weights)
        if network.W_in is None or network.E is None:
            raise InvalidInput("the network does not take features")
        check_program(record["program"])
        program = value_of(record["program"])
        source = next(value for value in _all(program) if value.operation == "tokens")
        if len(network.E) != program.n or len(network.W_out) != program.d:
            raise InvalidInput("the network and the program have different sizes")
        if network.W_in.shape[1] not in (source.d, source.d + source.settings["shorter"]):
            raise InvalidInput("the network reads another number of features than the program")
        check_places(record["places"], record["program"], network)
        places = tuple(record["places"])
        name = check_name(record)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, StopIteration) as error:
        raise BadWitnessFile(f"{path} is not a complete witness: {type(error).__name__}: {error}") from error
    kinds = KINDS[record["construction"]].certificates
    found = load_certificate(path, kinds) if (Path(path) / FILE).is_file() else None
    about_this = found is not None and found.is_about(weights_sha256(network), record["program"])
    return {
        "network": network,
        "program": program,
        "source": source,
        "places": places,
        "made": found if about_this else None,
        "written": record["program"],
        "name": name,
    }


def _all(program: Value) -> list[Value]:
    from thereexists.constructions.program.graph import nodes

    return list(nodes(program))
