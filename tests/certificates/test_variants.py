"""A certificate is of one kind, its file holds exactly the fields of that kind, and readers ask it, whatever it is."""

import dataclasses
import json
import shutil
from inspect import isabstract

import numpy as np
import pytest

import thereexists as te
from tests.hostile import forge_certificate
from thereexists import program as P
from thereexists.certificates.certificate import BLOCKS, FILE, Certificate, certificate_of, load_certificate
from thereexists.certificates.verify_bound import CHECKS
from thereexists.core.errors import BadWitnessFile
from thereexists.core.kinds import CERTIFICATES, KINDS, named
from thereexists.core.rounded_figures import rounded_up


def half_sorted(**states):
    return te.Target(lambda X: 0.5 * np.sort(X, axis=1), n=2, name="half-sorted", **states)


TARGETS = {"rigorous": half_sorted(lipschitz=0.5), "statistical": half_sorted(bound=0.5)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved witness with a certificate of every kind."""
    at = tmp_path_factory.mktemp("variants")
    for kind, target in TARGETS.items():
        witness = te.build(target, delta=1 / 2)
        witness.save(at / kind)
        te.certify(witness, opinions=1, samples=100).save(at / kind)
    te.build(P.sort(P.tokens(2)), dtypes=("float64", "float32")).save(at / "program")
    te.build(P.symbols("ab", n=2).flip(), dtypes=("float64", "float32")).save(at / "symbols")
    te.build(te.automata.regex("(ab|ba)*", alphabet="ab"), n=4).save(at / "automaton")
    return {kind: at / kind for kind in CERTIFICATES}


each = pytest.mark.parametrize("kind", CERTIFICATES)
FIELDS = [(kind, name) for kind, place in CERTIFICATES.items() for name in named(place).stored()]


def test_the_registry_names_every_final_variant_and_nothing_else():
    def variants(cls):
        return {cls, *(v for sub in cls.__subclasses__() for v in variants(sub))}

    classes = {kind: named(place) for kind, place in CERTIFICATES.items()}
    concrete = {cls for cls in variants(Certificate) if not isabstract(cls)}
    assert concrete == set(classes.values())
    assert all(cls.kind == kind and getattr(cls, "__final__", False) for kind, cls in classes.items())
    assert all(cls.right().keys() == set(cls.stored()) for cls in classes.values())  # no field goes unchecked
    assert {kind for entry in KINDS.values() for kind in entry.certificates} == set(CERTIFICATES)
    assert set(CHECKS) == set(KINDS["faithful"].certificates) == set(KINDS["compact"].certificates)


@each
def test_a_file_holds_exactly_the_fields_of_its_kind(kind, folders):
    record = json.loads((folders[kind] / FILE).read_text())
    certificate = load_certificate(folders[kind])
    assert record["kind"] == certificate.kind == kind
    assert record.keys() == {"format_version", "digest", "kind", *certificate.stored()}
    assert None not in [value for name, value in record.items() if name != "epsilon"]


@each
def test_it_says_what_it_is(kind, folders):
    certificate = load_certificate(folders[kind])
    assert 2 <= len(repr(certificate).splitlines()) <= 6
    assert repr(certificate).startswith(type(certificate).__name__)
    assert certificate.claim() in repr(certificate)
    assert rounded_up(certificate.bound, 6) in certificate.statement()
    described = json.loads(json.dumps(certificate.describe()))
    described.pop("seconds")
    assert certificate_of(described, folders[kind] / FILE) == certificate
    assert sum(certificate.shares().values()) >= certificate.bound * 0.999


@pytest.mark.sampled(19)
@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_field_that_is_missing_or_of_another_type_is_refused(kind, name, folders, tmp_path):
    shutil.copytree(folders[kind], tmp_path / "w")
    forge_certificate(tmp_path / "w", lambda r: r.update({name: True}))
    with pytest.raises(BadWitnessFile, match=name):
        load_certificate(tmp_path / "w")
    forge_certificate(tmp_path / "w", lambda r: r.pop(name))
    with pytest.raises(BadWitnessFile, match=f"must hold '{name}'"):
        load_certificate(tmp_path / "w")


STRANGE = [*((kind, "trust_me") for kind in CERTIFICATES), ("rigorous", "confidence"), ("statistical", "undecided")]
STRANGE += [("program", "p"), ("program", "about")]


@pytest.mark.parametrize(("kind", "name"), STRANGE)
def test_a_field_of_no_kind_or_of_another_is_refused(kind, name, folders, tmp_path):
    shutil.copytree(folders[kind], tmp_path / "w")
    forge_certificate(tmp_path / "w", lambda r: r.update({name: 0.5}))
    with pytest.raises(BadWitnessFile, match=f"must not hold '{name}'"):
        load_certificate(tmp_path / "w")
    verdict = te.verify(tmp_path / "w", TARGETS.get(kind), opinions=1)
    assert verdict.holds is False


@each
def test_a_certificate_of_another_kind_is_refused_by_name(kind, folders, tmp_path):
    """The whole file of another kind, digest and all, beside these weights."""
    for other in CERTIFICATES.keys() - {kind}:
        place = tmp_path / other
        shutil.copytree(folders[kind], place)
        shutil.copy(folders[other] / FILE, place / FILE)
        assert te.verify(place, TARGETS.get(kind), opinions=1).holds is False
        forge_certificate(place, lambda r: r.update(kind=kind))
        with pytest.raises(BadWitnessFile, match="is not a complete certificate"):
            load_certificate(place)


@each
def test_every_kind_has_a_report_by_itself(kind, folders, tmp_path):
    certificate = load_certificate(folders[kind])
    (tmp_path / "printed.json").write_text(json.dumps(certificate.describe()))
    for place in (folders[kind] / FILE, tmp_path / "printed.json"):
        page = str(te.report(place))
        assert (rounded_up(certificate.bound, 6) if not 0 < certificate.bound < 1e-15 else "10⁻¹⁵") in page
        assert "as its author says" in page


def test_a_loaded_certificate_is_saved_with_its_sums(folders, tmp_path):
    shutil.copytree(folders["rigorous"], tmp_path / "w")
    shutil.copytree(folders["rigorous"], tmp_path / "v")
    (tmp_path / "v" / BLOCKS).unlink()
    loaded = load_certificate(tmp_path / "w")
    loaded.save(tmp_path / "w")  # onto itself: the sums are still there
    loaded.save(tmp_path / "v")
    for folder in ("w", "v"):
        assert te.verify(tmp_path / folder, TARGETS["rigorous"], opinions=1).holds


def test_a_statistical_certificate_leaves_no_sums_of_another_behind(folders, tmp_path):
    shutil.copytree(folders["rigorous"], tmp_path / "w")
    load_certificate(folders["statistical"]).save(tmp_path / "w")
    assert not (tmp_path / "w" / BLOCKS).exists()


def test_no_certificate_without_a_finite_bound(folders):
    for kind in ("rigorous", "statistical"):
        with pytest.raises(te.ThereExistsError, match="Not proved"):
            dataclasses.replace(load_certificate(folders[kind]), bound=float("inf"))
