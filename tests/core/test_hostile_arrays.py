"""Files of arrays that a stranger made: one sentence from every reader, before memory is asked for."""

import zipfile

import numpy as np
import pytest
import torch
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, dia_array, save_npz

import thereexists as te
from thereexists.cli._input import read_sequences
from thereexists.core import storage
from thereexists.core.errors import InvalidInput, ThereExistsError
from thereexists.heads.io import load_matrix
from thereexists.patterns import load_npz
from thereexists.reports import report


def npy(shape, descr="|b1", data=b""):
    head = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * ((-len(head) - 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def packed(members, packing=zipfile.ZIP_DEFLATED):
    def write(path):
        with zipfile.ZipFile(path, "w", packing) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return write


def arrays(**named):
    return lambda path: np.savez(path, **named)


def sparse(kind, **named):
    return arrays(format=np.array(kind), **{"shape": np.array([2, 2]), "data": np.ones(2), **named})


def changed(offset_local, offset_central, value):
    """A whole file with one field of its two headers changed."""

    def write(path):
        packed({"mask.npy": npy("(2,2)", data=b"\1\0\1\1")}, zipfile.ZIP_STORED)(path)
        content = bytearray(path.read_bytes())
        content[offset_local] = value
        content[content.rindex(b"PK\1\2") + offset_central] = value
        path.write_bytes(content)

    return write


def corrupt(path):
    np.savez_compressed(path, mask=np.random.default_rng(0).random((30, 30)) < 0.5)
    content = bytearray(path.read_bytes())
    content[80] ^= 0xFF
    content[90] ^= 0x5A
    path.write_bytes(content)


HOSTILE = {
    "an npy": lambda path: path.write_bytes(npy("(2,2)", data=b"\1\0\1\1")),
    "huge": packed({"mask.npy": npy("(1000000,1000000)", data=b"\1")}),
    "beyond int64": packed({"mask.npy": npy("(10000000000000000000,1)", data=b"\1")}),
    "negative": packed({"mask.npy": npy("(-1,2)", data=b"\1\1")}),
    "a bomb": packed({"mask.npy": npy("(1,)", data=bytes(1 << 20))}),
    "objects": arrays(mask=np.array([[1, None], [1, 1]], dtype=object)),
    "complex": arrays(mask=np.ones((2, 2), complex)),
    "words": arrays(mask=np.array([["a", "b"], ["c", "d"]])),
    "struct": arrays(mask=np.zeros((2, 2), dtype=[("a", "f8")])),
    "dates": arrays(mask=np.zeros((2, 2), dtype="M8[s]")),
    "no axes": arrays(mask=np.array(1)),
    "no rows": arrays(mask=np.zeros((0, 0), bool)),
    "not a number": arrays(mask=np.full((2, 2), np.nan)),
    "garbage": packed({"mask.npy": b"garbage"}),
    "garbage without a name": packed({"mask": b"garbage"}),
    "nothing": packed({}),
    "empty": lambda path: path.write_bytes(b""),
    "no data": arrays(format=np.array("coo")),
    "a number for a format": arrays(format=np.array(5)),
    "no format": sparse(b"\xff\xfe"),
    "outside": sparse(b"csr", indices=np.array([0, 99]), indptr=np.array([0, 1, 2])),
    "falling": sparse(b"csr", indices=np.array([0, 1]), indptr=np.array([0, 5, 2])),
    "falling csc": sparse(b"csc", indices=np.array([0, 1]), indptr=np.array([0, 5, 2])),
    "huge dia": sparse(b"dia", offsets=np.array([0]), data=np.ones((1, 2)), shape=np.array([10**9, 10**9])),
    "huge coo": sparse(b"coo", row=np.array([0]), col=np.array([0]), data=np.ones(1), shape=np.array([10**12] * 2)),
    "outside coo": sparse(b"coo", row=np.array([0, -5]), col=np.array([0, 1])),
    "blocks of nothing": sparse(b"bsr", indices=np.array([0]), indptr=np.array([0, 1]), data=np.ones((1, 0, 2))),
    "flat blocks": sparse(b"bsr", indices=np.array([0]), indptr=np.array([0, 1]), data=np.ones(1)),
    "fractions": sparse(b"csr", indices=np.array([0, 1.5]), indptr=np.array([0, 1, 2]), data=np.array(["a", "b"])),
    "fractions only": sparse(b"csr", indices=np.array([0, 1.5]), indptr=np.array([0, 1, 2])),
    "pairs of floats": arrays(indptr=np.array([0.0, np.nan, 2]), indices=np.array([0, 1])),
    "pairs of words": arrays(indptr=np.array(["a", "b"]), indices=np.array([0, 1])),
    "pairs too long": arrays(indptr=np.array([0, 2**62, 2]), indices=np.array([0, 1])),
    "corrupt": corrupt,
    "unknown packing": changed(8, 10, 99),
    "encrypted": changed(6, 8, 1),
    "a call": packed({"mask.npy": b"\x93NUMPY\x01\x00\x10\x00{'descr':__import__"}),
    "deep": packed({"mask.npy": npy("(" * 5000 + ")" * 5000)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_sentence(name, tmp_path):
    file = tmp_path / "a.npz"
    HOSTILE[name](file)
    for read in (load_npz, load_matrix, report):
        with pytest.raises(ThereExistsError) as said:
            read(file)
        assert "\n" not in str(said.value)
    other = file.rename(tmp_path / "a.npy")
    with pytest.raises(InvalidInput):
        read_sequences(str(other), 3, 1)


def test_honest_files_still_load(tmp_path):
    eye = np.eye(4)
    for number, kind in enumerate((csr_array, csc_array, coo_array, bsr_array, dia_array)):
        save_npz(tmp_path / f"{number}.npz", kind(eye))
        assert load_matrix(tmp_path / f"{number}.npz").nonzeros == 4
        assert load_npz(tmp_path / f"{number}.npz").n == 4
    np.savez_compressed(tmp_path / "m.npz", a=np.ones((64, 64), bool), b=np.asfortranarray(np.tri(64)))
    pattern = load_npz(tmp_path / "m.npz")
    assert len(pattern.steps) == 2
    assert pattern.steps[1].entries(np.array([3]))[1].tolist() == [0, 1, 2, 3]
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3).T[:, :1])
    assert read_sequences(str(tmp_path / "x.npy"), 3, 1).tolist() == [[[0], [1], [2]]]


def test_a_long_record_needs_as_many_weights(tmp_path, monkeypatch):
    """A record has 16 MB and a vocabulary as long as its weights, up to a limit: what is saved can be read again."""
    monkeypatch.setattr(storage, "MOST_BYTES", 4096)
    monkeypatch.setattr(storage, "MOST_WORDS", 1 << 12)
    storage.write(tmp_path / "w", {"construction": "x" * 5000}, {"a": torch.zeros(1000)})
    assert (tmp_path / "w" / "witness.json").stat().st_size > 4096
    with pytest.raises(te.ThereExistsError, match="more than 8,192 bytes"):
        storage.write(tmp_path / "v", {"construction": "x" * 9000}, {"a": torch.zeros(10_000)})
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    with (tmp_path / "w" / "witness.json").open("ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(te.ThereExistsError, match="has at most"):
        storage.read_record(tmp_path / "w")
