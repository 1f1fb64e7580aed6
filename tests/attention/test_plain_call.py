"""The short way of a plain call on CUDA, and cuDNN's kernels for causal windows, on a GPU."""

import json
import subprocess
import sys

import pytest

from thereexists import attention as ta
from thereexists import patterns as tp
from thereexists.attention import cudnn_windows
from thereexists.attention.launching import Recorded


def test_a_recorded_launch_takes_the_tensors_of_its_call_and_keeps_nobodys():
    class Compiled:
        """What Triton returns: launched with a grid, it notes what it was given."""

        def __getitem__(self, grid):
            return lambda *args: seen.append((grid, args))

    seen, first, second = [], [object(), object()], [object(), object()]
    again = Recorded([(Compiled(), (3, 2, 1), (first[1], 7, first[0], "table", first[1]))], first)
    again(*second)
    again(*first)
    want = [((3, 2, 1), (x[1], 7, x[0], "table", x[1])) for x in (second, first)]
    assert seen == want
    kept = again._calls[0][1]
    assert kept == [None, 7, None, "table", None]


def test_explain_says_when_cudnn_would_do_it(monkeypatch):
    long, short = tp.window(4096, 1024).as_causal(), tp.window(4096, 100).as_causal()
    for there, words in ((True, "by cuDNN's kernels, which"), (False, "pip install 'thereexists[cuda]'")):
        monkeypatch.setattr(cudnn_windows, "installed", lambda there=there: there)
        said = ta.explain(long, "cuda")
        assert words in str(said)
        assert words in said.to_json()["heads"][0]["by"]
        assert "cuDNN" not in str(ta.explain(short, "cuda"))
        assert "cuDNN" not in str(ta.explain(tp.window(4096, 1024), "cuda"))  # it looks both ways
        assert "cuDNN" not in str(ta.explain(long, "cpu"))


def _script(*what):
    done = subprocess.run([sys.executable, "-m", *what], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def on_cuda(*what):
    return [json.loads(line) for line in _script("tests.attention.on_cuda", *what).splitlines()]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
def test_a_call_that_was_recorded_gives_the_same_bits(kind):
    rows = on_cuda("recorded", kind)
    assert [row for row in rows if not (row["same"] and row["differs"])] == []
    assert sum(row["recorded"] for row in rows) >= len(rows) // 2  # the others take more than launches, or are dense


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_shared_keys_mapped_and_compiled(kind):
    rows = on_cuda("shared", kind)
    assert [row for row in rows if not max(row[way] for way in ("plain", "mapped", "compiled")) <= 1] == []


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
def test_a_query_that_is_no_number_makes_its_row_nan(kind):
    rows = on_cuda("nan", kind)
    assert [row for row in rows if not (row["nan"] and row["others"])] == []


@pytest.mark.gpu
def test_cudnn_does_causal_windows_within_the_bounds():
    pytest.importorskip("cudnn")
    rows = on_cuda("cudnn")
    twice = [5, 9, 5, 9]  # tensors of a forward and of a backward pass
    assert [row for row in rows if row["by_cudnn"] != twice or not max(row["worst"]) <= 1] == []


@pytest.mark.gpu
def test_cudnn_with_a_sink_and_not_where_order_matters():
    pytest.importorskip("cudnn")
    (row,) = on_cuda("sink")
    assert row["asked"] == [5, 9]  # the second time, and not when torch is asked for deterministic algorithms
    assert max(row["apart"]) <= 2**-7  # two kernels that round to bfloat16, of the largest


def test_cudnn_is_asked_for_what_it_was_measured_to_win():
    assert cudnn_windows.wins((127, 0), 128)
    assert cudnn_windows.wins((1023, 0), 64)
    for window, d in (((126, 0), 128), ((1022, 0), 64), ((4095, 1), 128), ((4095, 4095), 256)):
        assert not cudnn_windows.wins(window, d)


def test_a_layout_gets_its_graph_when_it_comes_again(monkeypatch):
    built, graph = [], cudnn_windows.Graph(None, (), 1)
    monkeypatch.setattr(cudnn_windows, "_build", lambda *key: built.append(key) or graph)
    place = cudnn_windows._Place("forward", 8)
    assert [place.next() for _ in range(4)] == [None, graph, graph, graph]
    assert built == [("forward", 8)]


@pytest.mark.gpu
def test_models_with_windows_sinks_and_caps_equal_eager_on_the_gpu():
    rows = [json.loads(line) for line in _script("tests.attention.models_on_cuda").splitlines()]
    assert len(rows) >= 12
    wrong = [
        row for row in rows if max(row["logits"], row["gradients"]) > 1 or not row["alike"] or row["tokens"] is False
    ]
    assert wrong == []
