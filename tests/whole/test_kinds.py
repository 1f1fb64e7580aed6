"""The contract of every kind of witness: each verb works on a witness and on its folder, or says why it cannot.

A kind is an entry of ``core/kinds.py``; one without a verb fails here, and so does a switch on the kind anywhere else.
"""

import ast
import copy
import dataclasses
import json
import sys
import warnings
from importlib import import_module
from inspect import isabstract
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import thereexists as te
from tests.kinds import EXAMPLES
from thereexists.cli import app, main
from thereexists.cli.kinds import Commands
from thereexists.core.kinds import CERTIFICATES, KINDS, Kind, named
from thereexists.reports.explore import open_viewer
from thereexists.witness.plan import Plan
from thereexists.witness.trace import Trace
from thereexists.witness.witness import Witness

SOURCE = Path(te.__file__).parent


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    at = tmp_path_factory.mktemp("kinds")
    return {name: example.saved(at / name) for name, example in EXAMPLES.items()}


each = pytest.mark.parametrize("name", EXAMPLES)


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("verb", ["certify", "verify"])
@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name].kind in ("program", "symbols", "tokens")])
def test_a_dry_run_of_what_has_no_cubes_is_refused_in_one_sentence(name, verb, folders, monkeypatch, capsys):
    """The same one for both verbs: not that its certificate, which it may not need, is missing or another one."""
    monkeypatch.setattr(sys, "argv", ["thereexists", verb, str(folders[name]), "--dry-run"])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command sets its own
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said, what = capsys.readouterr(), KINDS[EXAMPLES[name].kind].what
    wanted = f"Error: A dry run predicts what the cubes of a function cost; this is {what}."
    assert (said.out, " ".join(said.err.split())) == ("", wanted)


# ---- the registry --------------------------------------------------------------------------------------------------


def missing(kind: Kind) -> list[str]:
    """The verbs whose entry leads nowhere."""
    others = ("name", "what", "fields", "may", "certificates")
    verbs = [field.name for field in dataclasses.fields(kind) if field.name not in others]
    found = []
    for verb in verbs:
        try:
            found += [] if kind.find(verb) is not None else [verb]
        except (ImportError, AttributeError, ValueError):
            found.append(verb)
    return found


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_entry_has_every_verb_and_an_example(kind):
    assert missing(kind) == []
    assert kind.name in {example.kind for example in EXAMPLES.values()}
    assert isinstance(kind.find("commands"), Commands)


@pytest.mark.parametrize("verb", ["load", "verify", "page", "commands"])
def test_a_planted_kind_without_a_verb_is_noticed(verb):
    for nowhere in ("", "thereexists.nowhere:f", "thereexists.witness.load:nothing"):
        assert missing(dataclasses.replace(KINDS["compact"], **{verb: nowhere})) == [verb]


def test_every_final_witness_is_of_a_kind_and_complete():
    for kind in KINDS.values():
        import_module(kind.load.partition(":")[0])

    def variants(cls):
        return {cls, *(v for sub in cls.__subclasses__() for v in variants(sub))}

    concrete = {cls for cls in variants(Witness) if not isabstract(cls)}
    assert {cls.construction for cls in concrete} == set(KINDS)
    assert all(getattr(cls, "__final__", False) for cls in concrete)
    for cls in variants(Plan) | variants(Trace):
        assert isabstract(cls) or dataclasses.is_dataclass(cls)


# ---- every verb, on a witness and on a folder ----------------------------------------------------------------------


@each
def test_plan_and_build(name):
    example = EXAMPLES[name]
    planned, witness = te.plan(example.given, **example.options), example.build()
    assert isinstance(planned, Plan)
    assert isinstance(witness, te.Witness)
    assert witness.construction == example.kind
    assert planned.parameters == witness.plan.parameters == witness.network.parameter_count
    assert planned.layers["total"] == witness.network.depth
    assert json.loads(json.dumps(planned.describe()))["construction"] == example.kind


@each
def test_load_and_run(name, folders):
    example, loaded = EXAMPLES[name], te.load(folders[name])
    assert type(loaded) is type(example.build())
    one = loaded([example.x])[0] if example.kind == "tokens" else loaded(np.array(example.x))
    again = example.build()([example.x])[0] if example.kind == "tokens" else example.build()(np.array(example.x))
    assert np.array_equal(one, again)
    assert json.loads(command("run", folders[name], "--input", example.typed, "--json"))["output"] is not None
    assert command("run", folders[name], "--input", example.typed)


@each
def test_repr_says_what_it_is_in_six_lines(name, folders):
    witness = te.load(folders[name])
    for said in (repr(witness), repr(witness.certificate)):
        assert 1 <= len(said.splitlines()) <= 6
        assert len(said) < 750
    assert type(witness).__name__ in repr(witness)


@each
def test_certify(name, folders):
    example = EXAMPLES[name]
    if example.kind == "tokens":
        for given in (te.load(folders[name]), folders[name]):
            with pytest.raises(te.ThereExistsError, match="no distance to certify"):
                te.certify(given)
        assert te.load(folders[name]).certificate is None
        return
    before = te.load(folders[name]).certificate
    for given in (te.load(folders[name]), folders[name]):
        assert te.certify(given, opinions=1).bound == before.bound
    assert before.claim()
    if example.kind not in ("program", "symbols"):  # a certificate is about these very weights
        loaded = te.load(folders[name])
        other = copy.deepcopy(loaded.network)
        next(other.parameters()).data += 1.0
        assert dataclasses.replace(loaded, network=other).certificate is None
    assert command("certify", folders[name])


@each
def test_verify(name, folders):
    verdict = te.verify(folders[name], opinions=1)
    assert verdict.holds, verdict.reasons
    assert "holds" in command("verify", folders[name])


@each
def test_trace(name, folders):
    example = EXAMPLES[name]
    for given in (te.load(folders[name]), folders[name]):
        traced = te.trace(given, example.x)
        assert isinstance(traced, Trace)
        assert json.loads(json.dumps(traced.describe()))
    witness = te.load(folders[name])
    if example.kind == "tokens":
        assert traced.answer == witness([example.x])[0]
    else:
        assert np.array_equal(traced.output, witness(np.array(example.x)))
    assert command("trace", folders[name], "--input", example.typed)
    assert json.loads(command("trace", folders[name], "--input", example.typed, "--json"))


@each
def test_show_and_describe(name, folders):
    assert json.loads(json.dumps(te.load(folders[name]).describe()))
    assert json.loads(command("show", folders[name], "--json"))["parameters"] > 0
    assert command("show", folders[name])


@each
def test_export(name, folders, tmp_path):
    for k, given in enumerate((te.load(folders[name]), folders[name])):
        if EXAMPLES[name].kind == "faithful":
            with pytest.raises(te.ThereExistsError, match="narrow layers that need float64"):
                te.export(given, "torch", tmp_path / str(k))
        else:
            assert te.export(given, "torch", tmp_path / str(k))["compared"] > 0


@each
def test_samples_are_what_the_network_gives(name, folders):
    witness = te.load(folders[name])
    samples = witness.samples()
    assert len(samples) > 0
    for inputs, wanted in samples.parts:
        assert len(inputs) == len(wanted) > 0
    assert samples.allowed >= 0


@each
def test_report(name, folders, tmp_path):
    page = te.report(folders[name])
    assert page.sections
    page.save(tmp_path / "r.html")
    assert "SHA-256" in str(page) or EXAMPLES[name].kind == "program"


@each
def test_explore(name, folders):
    viewer = open_viewer(folders[name])
    about = viewer.about()
    answer = viewer.run({"x": EXAMPLES[name].x, "words": EXAMPLES[name].x})
    assert about["depth"] == te.load(folders[name]).network.depth
    assert answer["frames"]


@each
def test_dtypes(name, folders):
    witness = te.load(folders[name])
    for dtype, verdict in witness.verdicts().items():
        if verdict.holds:
            assert next(witness.to(dtype).network.parameters()).dtype == getattr(__import__("torch"), dtype)
        else:
            with pytest.raises(te.ThereExistsError, match=dtype):
                witness.to(dtype)


def test_a_table_is_planned_on_the_command_line(tmp_path):
    (tmp_path / "t.csv").write_text("x1,x2,y1,y2\n0,1,1,1\n1,0,0,0\n")
    said = json.loads(command("plan", tmp_path / "t.csv", "--json"))
    built = json.loads(command("build", tmp_path / "t.csv", "--out", tmp_path / "w", "--json"))
    assert said["parameters"] == built["parameters"] > 0
    assert command("plan", tmp_path / "t.csv")


def test_a_sharded_witness_is_a_witness_like_any_other(tmp_path):
    from thereexists.constructions.faithful.sharded import build_sharded

    build_sharded(te.targets.builtin("reverse", n=2), tmp_path / "w", "1/2", shard_bytes=2048)
    te.certify(tmp_path / "w", opinions=1)
    assert te.verify(tmp_path / "w", opinions=1).holds
    assert "of their index" in str(te.report(tmp_path / "w"))
    assert te.trace(tmp_path / "w", [[0.2], [0.7]]).output.shape == (2, 1)


# ---- nobody else asks of what kind a witness is --------------------------------------------------------------------

KIND_WORDS = {"faithful", "compact", "tokens", "program", "sparse", "automaton", *CERTIFICATES}
CERTIFICATE_CLASSES = {
    "Certificate",
    "FunctionCertificate",
    "CompiledCertificate",
    *(p.partition(":")[2] for p in CERTIFICATES.values()),
}
CLASSES = CERTIFICATE_CLASSES | {
    "EmbeddedTransformer",
    "Witness",
    "TokenWitness",
    "ProgramWitness",
    "SymbolWitness",
    "CompiledWitness",
    "FaithfulWitness",
    "CompactWitness",
    "AutomatonWitness",
    "StateMaps",
    "MonoidMaps",
}
# Where a look at the class is the point: the registry's own loaders and the one door of all verbs.
ALLOWED = {
    ("witness/load.py", "isinstance(witness, Witness)"),
    ("witness/verbs.py", "isinstance(given, Witness | str | Path)"),
    ("constructions/compact/witness.py", "isinstance(network, EmbeddedTransformer)"),
    ("certificates/verify_function.py", "isinstance(network, EmbeddedTransformer)"),
    ("reports/kinds/pattern.py", "found.n is None"),  # of a pattern, not of a certificate
    ("reports/kinds/pattern.py", "found.n is not None"),
    ("certificates/verify_bound.py", "certificate.float_run is not None"),  # of a format that had none, not of a kind
}


STORED = {name for place in CERTIFICATES.values() for name in named(place).stored()}
A_CERTIFICATE = ("certificate", "found", "made")  # how certificates are called
ASKED = ("witness", "loaded", "network", "converted", *A_CERTIFICATE)


def last(node):
    """``certificate`` of ``case.certificate``."""
    return ast.unparse(node).rpartition(".")[2]


def names(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def of_a_certificate(node):
    """Whether this is a stored field of a certificate: ``case.certificate.parts``."""
    return isinstance(node, ast.Attribute) and last(node.value) in A_CERTIFICATE and node.attr in STORED


def is_a_switch(node):
    """A comparison with names of kinds, or a look at the class or the attributes of a witness, its network or its
    certificate; of a certificate also whether a field of it is None."""
    if isinstance(node, ast.MatchClass):
        return bool(names(node.cls) & CLASSES)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        asks = node.func.id
        if asks == "type" and len(node.args) == 1:
            return last(node.args[0]) in ("witness", "certificate")
        if asks == "isinstance":
            return bool(names(node.args[1]) & CLASSES)
        return asks in ("hasattr", "getattr") and last(node.args[0]) in ASKED
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        values = [n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)]
        if None in values and any(of_a_certificate(side) for side in sides):
            return True
        words = {value for value in values if isinstance(value, str)}
        return bool(words & KIND_WORDS) and any(w in ast.unparse(node) for w in ("construction", "kind", "record"))
    return False


def switches(tree):
    return [ast.unparse(node) for node in ast.walk(tree) if is_a_switch(node)]


def all_switches():
    found = set()
    for package in (
        "core",
        "model",
        "certificates",
        "witness",
        "constructions",
        "exports",
        "reports",
        "cli",
        "evaluate",
    ):
        for file in (SOURCE / package).rglob("*.py"):
            place = str(file.relative_to(SOURCE))
            found |= {(place, what) for what in switches(ast.parse(file.read_text()))}
    return found


def test_no_switch_on_the_kind_outside_the_registry():
    assert all_switches() - ALLOWED == set()


@pytest.mark.parametrize(
    "line",
    [
        "if isinstance(network, EmbeddedTransformer): pass",
        "if hasattr(witness, 'grid'): pass",
        "x = getattr(witness, 'program', None)",
        "x = getattr(self.network, 'safe', ())",
        "if plan.construction == 'compact': pass",
        "if 'program' in record: pass",
        "if certificate.kind == 'rigorous': pass",
        "if 'statistical' != case.certificate.kind: pass",
        "if certificate.kind in ('rigorous', 'program'): pass",
        "if isinstance(found, StatisticalCertificate): pass",
        "if isinstance(x, Certificate | None): pass",
        "if hasattr(certificate, 'parts'): pass",
        "x = getattr(witness.certificate, 'confidence', None)",
        "if certificate.confidence is None: pass",
        "x = case.certificate.blocks_sha256 is not None",
        "if type(witness.certificate) is RigorousCertificate: pass",
        "match x:\n    case RigorousCertificate(): pass",
    ],
)
def test_a_planted_switch_is_noticed(line):
    assert switches(ast.parse(line))
