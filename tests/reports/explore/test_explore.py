"""explore: its frames are exactly the layers that change anything, and its server answers only its own page."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection

import numpy as np
import pytest
import torch

import thereexists as te
from tests.command import thereexists
from tests.reports.pages import EVIL, serving
from thereexists.certificates.certificate import load_certificate
from thereexists.core import storage
from thereexists.core.errors import BadWitnessFile, CannotBuild, InvalidInput
from thereexists.reports.explore import changes, frames, open_viewer
from thereexists.reports.explore import viewer as viewers
from thereexists.reports.explore.frames import attention_at
from thereexists.reports.explore.server import MOST_BYTES
from thereexists.reports.explore.viewer import plain

KINDS = ("faithful", "equivariant", "wide", "sparse")


def layer_by_layer(network, x):
    """The definition: every layer run, one after the other. (number, state) of those that change anything."""
    found = []
    with torch.no_grad():
        Z = torch.from_numpy(x[None])
        Z = Z if network.E is None else Z + network.E
        for number, (_, _, layer) in enumerate(network.layers(), 1):
            before, Z = Z, layer(Z)
            if not torch.equal(before, Z):
                found.append((number, Z[0].numpy()))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*KINDS, "modified", "sparsemax"])
def test_frames_are_the_layers_that_change_anything(folders, kind):
    if kind in folders:
        witness = te.load(folders[kind])
    elif kind == "modified":
        witness = te.build(te.targets.builtin("sort", n=2), delta=1 / 4, modified=True)
    else:
        pattern = te.patterns.window(n=3, window=1)
        witness = te.build(te.targets.builtin("sort", n=3), delta=1 / 2, pattern=pattern, rho="sparsemax")
    rng = np.random.default_rng(0)
    for _ in range(8):
        x = rng.random((witness.grid.n, witness.grid.d))
        found, wanted = changes(witness.network, x), layer_by_layer(witness.network, x)
        assert found.complete
        assert [f.layer for f in found.frames] == [number for number, _ in wanted]
        assert all((f.state == state).all() for f, (_, state) in zip(found.frames, wanted, strict=True))
        assert (found.frames[-1].state == witness(x)).all()


@pytest.mark.parametrize("kind", ["faithful", "sparse"])
def test_a_layer_that_starts_to_change_something_becomes_a_frame(folders, kind):
    """Planted fault: a silent layer gets a bias."""
    witness = te.load(folders[kind])
    x = np.random.default_rng(1).random((witness.grid.n, 1))
    silent = set(range(1, witness.network.depth + 1)) - {f.layer for f in changes(witness.network, x).frames}
    value = witness.network.stages["value"]
    first = witness.network.depth - value.depth
    planted = max(layer for layer in silent if layer > first)
    with torch.no_grad():
        value.feed_forward.b_2[planted - first - 1] += 2.0**-30
    assert planted in [f.layer for f in changes(witness.network, x).frames]


def test_attention_of_every_layer_is_the_networks_own(folders):
    for kind in ("faithful", "sparse"):
        witness = te.load(folders[kind])
        x = np.random.default_rng(2).random((witness.grid.n, 1))
        found = changes(witness.network, x)
        with torch.no_grad():
            Z = torch.from_numpy(x[None]) + witness.network.E
            for number, (_, _, layer) in enumerate(witness.network.layers(), 1):
                weights, shown = layer.attention_weights(Z), attention_at(witness.network, found, number)
                assert (weights is None) == (shown is None)
                assert shown is None or (weights[0].numpy() == shown).all()
                Z = layer(Z)


def test_a_deep_network_answers_at_once():
    """16,449 layers: measured 5 to 30 ms an input; a second is what a slow machine in company may take."""
    witness = te.build(te.targets.builtin("sort", n=4), delta=1 / 8)
    assert witness.network.depth == 16_449
    rng, seconds = np.random.default_rng(0), []
    for _ in range(5):
        x = rng.random((4, 1))
        begun = time.perf_counter()
        found = changes(witness.network, x)
        seconds.append(time.perf_counter() - begun)
        assert (found.frames[-1].state == witness(x)).all()
        assert len(found.frames) == 13  # 4 entries fall, 4 tokens shift, all shift at once, 4 values come
    assert sorted(seconds)[2] < 1.0


def test_too_many_changes_are_cut_and_said(folders):
    witness = te.load(folders["faithful"])
    x = np.array([[0.7], [0.1]])
    cut = changes(witness.network, x, most=3)
    assert not cut.complete
    assert len(cut.frames) == 3
    assert not changes(witness.network, x, seconds=0.0).complete
    with torch.no_grad():
        witness.network.stages["value"].feed_forward.b_2 += 1.0  # now every layer changes everything
    assert not changes(witness.network, x, most=10).complete


# --- what the page is told -------------------------------------------------------------------------------------------


def test_columns_say_what_moved(folders):
    viewer = open_viewer(folders["faithful"])
    answer = viewer.run({"x": [[0.7], [0.1]]})
    says = [frame["says"] for frame in answer["frames"]]
    assert "token 1 from 1.35 to 1.25, the lower edge" in says[1]  # 0.1 + 5 steps of 1/4
    assert [s.split(":")[0] for s in says[1:]] == [*["Quantiser"] * 2, *["Selective shift"] * 2, "Global shift",
                                                   *["Value mapping"] * 2, "The output"]  # fmt: skip
    assert [frame["chapter"] for frame in answer["frames"]] == [0, 0, 0, 1, 1, 2, 3, 3, 4]
    assert all("K·(max − min)" in s for s in says[3:5])
    assert answer["same"]
    assert answer["output"].tolist() == [[0.125], [0.625]]
    assert answer["target"].tolist() == [[0.1], [0.7]]
    traced = te.trace(te.load(folders["faithful"]), [[0.7], [0.1]])
    assert [(m.stage, m.layer) for m in traced.moves if m.stage == "value"] == [
        (f["stage"], f["index"]) for f in answer["frames"] if f["stage"] == "value"
    ]


def test_the_reason_of_a_move_is_read_off_the_weights(folders, tmp_path):
    """Windows, factors and ghosts are the network's own. Planted fault: weights that no longer give K·(max − min)."""
    viewer = open_viewer(folders["faithful"])
    about, frames = viewer.about(), viewer.run({"x": [[0.7], [0.1]]})["frames"]
    shifts = [frame for frame in frames if frame["chapter"] == 1]
    first = next(stage["first"] for stage in about["stages"] if stage["name"] == "context")
    for frame in shifts:
        (j,) = frame["moved"]
        low, high = about["windows"][frame["layer"] - first]
        before = next(f for f in reversed(frames) if f["layer"] < frame["layer"])["ids"]
        assert [k for k in range(2) if low < before[k] < high] == [j]
        assert {link["head"]: before[link["from"]] for link in frame["links"]} == {0: before.max(), 1: before.min()}
    ghosts = about["ghosts"]
    ids = np.array(ghosts["start"])
    for _, who, to in ghosts["moves"]:
        ids[who] = to
    assert len(set(ids.tolist())) == 2 * 16
    record, weights = storage.read(folders["faithful"])
    weights["stages.context.attention.W_O"][:-1, 0] *= 1.5
    storage.write(tmp_path / "w", record, weights)
    changed = [f for f in open_viewer(tmp_path / "w").run({"x": [[0.7], [0.1]]})["frames"] if f["chapter"] == 1]
    assert changed
    assert not any("K·" in frame["says"] or frame.get("formula") for frame in changed)


def test_keys_match_where_units_fire(folders):
    witness, viewer = te.load(folders["compact"]), open_viewer(folders["compact"])
    frame = viewer.run({"x": [[0.7], [0.1]]})["frames"][4]
    W_1 = witness.network.stages["recall"].feed_forward.W_1[0]
    for one in frame["fired"]:
        assert all(frame["stream"][one["token"]][row] == 0 for row in one["must"])
        assert [*one["gate"], *one["must"]] == [
            *torch.where(W_1[one["unit"]] > 0)[0],
            *torch.where(W_1[one["unit"]] < 0)[0],
        ]
        assert all(frame["stream"][one["token"]][row] != 0 for row in one["stops"])


def test_a_certificate_is_told_if_it_is_about_these_weights(folders, tmp_path):
    certificate = load_certificate(folders["faithful"])
    told = open_viewer(folders["faithful"]).about()["certified"]
    assert told.startswith(f"{certificate.claim()}; d_1 is the integral")
    assert told.endswith(f"{certificate.meaning()[-1]} (as its author says)")
    shutil.copytree(folders["sparse"], tmp_path / "w")
    assert open_viewer(tmp_path / "w").about()["certified"] is None
    shutil.copy(folders["faithful"] / "certificate.json", tmp_path / "w")
    assert open_viewer(tmp_path / "w").about()["certified"] is None


def test_short_runs_find_the_same_frames(folders, monkeypatch):
    witness, x = te.load(folders["sparse"]), np.random.default_rng(3).random((4, 1))
    wanted = [f.layer for f in changes(witness.network, x).frames]
    monkeypatch.setattr(frames, "MOST_NUMBERS", 1)  # one layer at a time, as for a long sequence
    assert [f.layer for f in changes(witness.network, x).frames] == wanted


def test_blocks_end_at_the_output(folders):
    witness, viewer = te.load(folders["compact"]), open_viewer(folders["compact"])
    for x in np.random.default_rng(0).random((4, 2, 1)):
        answer = viewer.run({"x": x.tolist()})
        assert answer["same"]
        assert (answer["frames"][-1]["state"] == witness(x)).all()
        assert len(answer["frames"]) == witness.network.depth + 2  # the input, and the output
    assert viewer.attention({"x": x.tolist(), "layer": 1}) == {"heads": None}
    heads = viewer.attention({"x": x.tolist(), "layer": 3})["heads"]
    assert (heads == 0.5).all()  # a plain average


def test_words_go_in_and_come_out(tokens):
    viewer = open_viewer(tokens["memorise"])
    answer = viewer.run({"words": ["a", "cat"]})
    assert answer["answer"] == answer["stored"] == ["kočka"]
    assert answer["same"]
    assert viewer.run({"words": ["cat", "a"]})["stored"] is None
    table = open_viewer(tokens["table"])
    assert table.run({"words": ["1", "1"]})["answer"] == ["0", "1"]  # integers, typed as text
    for words, says in ((["a", "wolf"], "not in the vocabulary"), ([], "1 to 2 tokens"), (7, "a list of texts")):
        with pytest.raises(InvalidInput, match=says):
            viewer.run({"words": words})


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"x": 1}, {"x": [0.1, 0.2]}, {"x": [[0.1]]}, {"x": [[0.1], ["a"]]}, {"x": [[0.1], [True]]},
        {"x": [[0.1], [2.0]]}, {"x": [[0.1], [float("nan")]]}, {"x": [[0.1], [10**400]]}, {"x": [[[0.1]], [[0.2]]]},
    ],
)  # fmt: skip
def test_a_wrong_question_gets_one_sentence(folders, asked):
    viewer = open_viewer(folders["faithful"])
    with pytest.raises(InvalidInput):
        viewer.run(asked)
    for layer in (0, 10**9, 1.5, "1", None):
        with pytest.raises(InvalidInput, match="'layer' must be"):
            viewer.attention({"x": [[0.1], [0.2]], "layer": layer})


# --- hostile files ---------------------------------------------------------------------------------------------------


def test_hostile_texts_are_cut_and_travel_as_json(hostile):
    about = open_viewer(hostile).about()
    assert about["title"] == f"{' '.join(EVIL.split())} (as its author says)"
    assert len(about["about"]) < 500
    with serving(hostile) as server:
        status, headers, body = fetch(server, "api/witness")
    assert status == 200
    assert headers["Content-Type"].startswith("application/json")
    assert json.loads(body)["title"] == about["title"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e308])
def test_numbers_that_are_none_become_null(folders, tmp_path, bad):
    record, weights = storage.read(folders["faithful"])
    weights["stages.value.feed_forward.b_2"][:] = bad
    storage.write(tmp_path / "w", record, weights)
    answer = plain(open_viewer(tmp_path / "w").run({"x": [[0.1], [0.2]]}))
    json.dumps(answer, allow_nan=False)
    assert any(value is None for frame in answer["frames"] for value in frame["ids"])


def test_what_is_too_large_is_refused(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("thereexists.reports.explore.columns.WIDEST", 3)
    with pytest.raises(CannotBuild, match="r = 4"):
        open_viewer(folders["faithful"])
    monkeypatch.setattr(viewers, "MOST_ENTRIES", 1)
    with pytest.raises(CannotBuild, match="2 × 1 numbers"):
        open_viewer(folders["faithful"])
    monkeypatch.setattr(viewers, "MOST_WEIGHT_BYTES", 100)
    with pytest.raises(CannotBuild, match="explore takes up to 100"):
        open_viewer(folders["faithful"])
    (tmp_path / "witness.json").write_bytes(b" " * ((16 << 20) + 1))
    with pytest.raises(BadWitnessFile, match="bytes"):
        open_viewer(tmp_path)


def test_a_malformed_record_is_refused(folders, tmp_path):
    record, weights = storage.read(folders["faithful"])
    record["grid"] |= {"n": 3}
    storage.write(tmp_path / "w", record, weights)
    with pytest.raises(BadWitnessFile, match="malformed"):
        open_viewer(tmp_path / "w")


# --- the server ------------------------------------------------------------------------------------------------------


def fetch(server, place="", method="GET", body=None, path=None, **headers):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"/{server.token}/{place}" if path is None else path, body, headers)
    answer = connection.getresponse()
    content = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return content


@pytest.fixture(scope="module")
def server(folders):
    with serving(folders["faithful"]) as running:
        yield running


def test_the_page_and_its_policy(server):
    assert server.server_address[0] == "127.0.0.1"
    for place in ("", "explore.js", "explore.css", "page.css"):
        status, headers, body = fetch(server, place)
        assert status == 200
        assert b"http" not in body.replace(b"http://www.w3.org/2000/svg", b"")  # nothing is asked from elsewhere
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_a_question_is_answered(server):
    body = json.dumps({"x": [[0.7], [0.1]]})
    status, _, answer = fetch(server, "api/run", "POST", body, Content_Type="application/json")
    assert status == 200
    assert json.loads(answer)["output"] == [[0.125], [0.625]]
    body = json.dumps({"x": [[0.7], [0.1]], "layer": 11})
    status, _, answer = fetch(server, "api/attention", "POST", body, Content_Type="application/json")
    assert status == 200
    assert np.array(json.loads(answer)["heads"]).shape == (2, 2, 2)


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (403, {"Host": "evil.example"}),  # a name that somebody's DNS points at 127.0.0.1
        (403, {"Host": "127.0.0.1:1"}),
        (403, {"Origin": "https://evil.example"}),
        (403, {"Origin": "null"}),
        (404, {"path": "/"}),
        (404, {"path": "/guess/"}),
        (404, {"path": "/guess/api/witness"}),
        (404, {"place": "nothing"}),
        (404, {"place": "../../pyproject.toml"}),
        (404, {"place": "api/run"}),
        (404, {"place": "api/nothing", "method": "POST", "body": "{}", "Content_Type": "application/json"}),
        (403, {"place": "api/run", "method": "POST", "body": "{}", "Host": "evil.example"}),
        (415, {"place": "api/run", "method": "POST", "body": "{}", "Content_Type": "text/plain"}),
        (413, {"place": "api/run", "method": "POST", "Content_Length": str(MOST_BYTES + 1)}),
        (413, {"place": "api/run", "method": "POST", "Content_Length": "many"}),
        (413, {"place": "api/run", "method": "POST", "Content_Length": "9" * 5000}),
        (400, {"place": "api/run", "method": "POST", "body": "{", "Content_Type": "application/json"}),
        (400, {"place": "api/run", "method": "POST", "body": "[1]", "Content_Type": "application/json"}),
        (400, {"place": "api/run", "method": "POST", "body": "[" * 60_000, "Content_Type": "application/json"}),
        (400, {"place": "api/run", "method": "POST", "body": '{"x": [[9]]}', "Content_Type": "application/json"}),
        (501, {"method": "PUT"}),
        (501, {"method": "OPTIONS"}),
    ],
)
def test_others_are_refused(server, status, request_):
    found, headers, body = fetch(server, **request_)
    assert found == status
    assert b"Traceback" not in body
    assert "Access-Control-Allow-Origin" not in headers
    assert fetch(server)[0] == 200  # and it goes on


def test_who_sends_byte_by_byte_is_cut_off(server, monkeypatch):
    """The patience is for the whole request: a byte now and then does not prolong it."""
    monkeypatch.setattr("thereexists.reports.explore.server.PATIENCE", 0.5)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line, contextlib.suppress(OSError):
        while time.monotonic() - began < 8:
            line.send(b"G")
            line.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                if not line.recv(1):
                    break
    assert time.monotonic() - began < 6
    assert fetch(server)[0] == 200


def test_the_command_serves_until_it_is_stopped(folders):
    command = [sys.executable, "-m", "thereexists", "explore", str(folders["compact"]), "--no-browser", "--json"]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores Ctrl-C
    )
    try:
        told = json.loads(running.stdout.readline())
        assert told["url"].startswith(f"http://127.0.0.1:{told['port']}/")
        connection = HTTPConnection("127.0.0.1", told["port"], timeout=10)
        connection.request("GET", told["url"].split(str(told["port"]))[1] + "api/witness")
        assert json.loads(connection.getresponse().read())["kind"] == "blocks"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
        assert (running.returncode, out, err) == (0, "", "")
    finally:
        running.kill()
        running.communicate()


def test_the_command_refuses_in_one_sentence(folders, server, tmp_path):
    for words, says in (
        (["nowhere"], "is not the folder"),
        ([tmp_path], "There is no saved witness"),
        ([folders["compact"], "--port", server.port], "cannot be used"),
        ([folders["compact"], "--port", 70_000], "cannot be used"),
        ([folders["compact"], "--function", "none.py:f"], "There is no file"),
    ):
        done = thereexists("explore", *words, "--no-browser", cwd=tmp_path, code=2)
        assert says in done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
