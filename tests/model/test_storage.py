"""A saved model comes back bit by bit; any other file is refused with one plain error."""

import json
import pickle
import struct
import zipfile
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.errors import DpsynthError
from dpsynth.model import MarkovRandomField
from dpsynth.model import storage as array_file
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.storage import ModelFileError, load, save


@pytest.fixture(scope="module")
def fields(fields_of):
    """Each problem's field of 80 rows, made from the explicit joint."""
    return [(p, field) for p, field, _ in fields_of(80.0)]


def small(dtype=np.float64):
    """A field a - b - c of whole numbers."""
    table = np.arange(1, 19).reshape(3, 2, 3)
    tree = JunctionTree(Domain({"a": 3, "b": 2, "ç": 3}), (("a", "b"), ("b", "ç")), (Edge(1, 0, ("b",)),))
    beliefs = (table.sum(axis=2).astype(dtype), table.sum(axis=0).astype(dtype))
    return MarkovRandomField(tree, beliefs, float(table.sum()))


@pytest.fixture
def path(tmp_path):
    """Where a model may be saved."""
    return tmp_path / "model.npz"


def test_what_is_loaded_is_what_was_saved_bit_by_bit(fields, path):
    for p, model in fields[:70]:
        save(model, path)
        again = load(path)
        assert again.tree == model.tree and again.total == model.total, p.name
        assert again.fingerprint() == model.fingerprint(), p.name


def test_single_precision_stays_single(path):
    save(small(np.float32), path)
    assert [b.dtype for b in load(path).beliefs] == [np.float32, np.float32]
    np.testing.assert_array_equal(load(path).marginal(("a",)), small().marginal(("a",)))


def test_arrays_in_any_memory_order_are_saved_alike(path):
    model = small()
    save(model, path)
    plain = path.read_bytes()
    turned = MarkovRandomField(model.tree, tuple(np.asfortranarray(b) for b in model.beliefs), model.total)
    save(turned, path)
    assert path.read_bytes() == plain


def test_the_bytes_of_a_saved_model_are_fixed(path):
    save(small(), path)
    found = sha256(path.read_bytes()).hexdigest()
    assert found == "fa00d2560f66bb571776e6cd67771d4a343a3772ec5de946af8f63a048189015"


def test_numpy_reads_the_file_without_pickle(path):
    save(small(), path)
    with np.load(path, allow_pickle=False) as content:
        np.testing.assert_array_equal(content["belief_0"], small().beliefs[0])
        header = json.loads(content["header.json"])
    assert header["version"] == 1 and header["columns"] == [["a", 3], ["b", 2], ["ç", 3]]


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(small(), path)
    before = path.read_bytes()
    monkeypatch.setattr(array_file, "_preamble", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(small(), path)
    assert path.read_bytes() == before
    assert [f.name for f in path.parent.iterdir()] == [path.name]


def test_saving_replaces_an_older_model(path):
    path.write_text("something else")
    save(small(), path)
    assert load(path).fingerprint() == small().fingerprint()
    assert [f.name for f in path.parent.iterdir()] == [path.name]


def broken(**changes):
    """The small model with some attributes changed."""
    model = small()
    tree = changes.pop("tree", model.tree)
    return MarkovRandomField(tree, changes.pop("beliefs", model.beliefs), changes.pop("total", model.total))


TORN = (small().beliefs[0], small().beliefs[1][::-1].copy())


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (broken(beliefs=TORN), "disagree on"),
        (broken(beliefs=(small().beliefs[0] * np.nan, small().beliefs[1])), "negative or no number"),
        (broken(beliefs=(small().beliefs[0] - 7, small().beliefs[1])), "negative or no number"),
        (broken(beliefs=(small().beliefs[0] * np.inf, small().beliefs[1])), "does not sum to the total"),
        (broken(beliefs=(small().beliefs[0].T, small().beliefs[1])), "wrong shape"),
        (broken(beliefs=small().beliefs[:1]), "one array a clique"),
        (broken(beliefs=tuple(b.astype(int) for b in small().beliefs)), "is of int64"),
        (broken(total=170.0), "does not sum to the total"),
        (broken(total=float("nan")), "not a positive number"),
        (broken(total=0.0), "not a positive number"),
    ],
)
def test_a_model_that_breaks_its_promises_is_not_saved(model, complaint, path):
    with pytest.raises(ModelFileError, match=complaint):
        save(model, path)
    assert not path.exists()


def parts_of(path):
    """The members of a saved small model."""
    save(small(), path)
    with zipfile.ZipFile(path) as archive:
        return {m.filename: archive.read(m) for m in archive.infolist()}


def rewrite(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def with_header(path, **changes):
    parts = parts_of(path)
    header = json.loads(parts["header.json"]) | changes
    rewrite(path, parts | {"header.json": json.dumps({k: v for k, v in header.items() if v is not ...})})


def assert_refused(path, complaint):
    with pytest.raises(ModelFileError, match=complaint) as caught:
        load(path)
    assert isinstance(caught.value, DpsynthError) and path.name in str(caught.value)
    assert "\n" not in str(caught.value)


LOOP = [["a", "b"], ["b", "ç"], ["a", "ç"]]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": "something"}, "its format is not"),
        ({"version": 2}, "its version is 2; this program reads version 1"),
        ({"version": "1"}, "its version is '1'"),
        ({"total": ...}, "its header must have"),
        ({"more": 1}, "its header must have"),
        ({"total": "171"}, "total is not a number"),
        ({"total": 172.0}, "does not sum to the total"),
        ({"total": float("inf")}, "not a positive number"),
        ({"columns": {"a": 3}}, "columns are not pairs"),
        ({"columns": [["a", 3], ["b", 2], ["ç", True]]}, "columns are not pairs"),
        ({"columns": [["a", 3], ["a", 3], ["b", 2], ["ç", 3]]}, "names a column twice"),
        ({"columns": [["a", 3], ["b", 2], ["ç", 3], ["d", 1]]}, "'d' do not hang together"),
        ({"columns": [["b", 2], ["a", 3], ["ç", 3]]}, "not in the domain's order"),
        ({"columns": [["a", 3], ["b", 2], ["ç", 10**30]]}, "belief_1.npy has a wrong size"),
        ({"columns": [["a", -3], ["b", 2], ["ç", 3]]}, "a column has no values"),
        ({"columns": [], "cliques": [], "edges": [], "dtypes": []}, "it has no columns"),
        ({"cliques": ["ab", ["b", "ç"]]}, "cliques are not lists of names"),
        ({"cliques": [["a", "b"], ["b", "z"]]}, "not in the domain's order"),
        ({"cliques": [["a", "a"], ["b", "ç"]]}, "not in the domain's order"),
        ({"cliques": [["a", "b"]], "dtypes": ["<f8"]}, "an edge has no clique"),
        ({"cliques": LOOP, "edges": [[1, 0], [2, 1]], "dtypes": ["<f8"] * 3}, "'a' do not hang together"),
        ({"edges": []}, "do not join all cliques"),
        ({"edges": [[1, 0], [1, 0]]}, "not a tree"),
        ({"edges": [[0, 1]]}, "not a tree"),
        ({"edges": [[1, 1]]}, "not a tree"),
        ({"edges": [[1, -1]]}, "an edge has no clique"),
        ({"edges": [[1, 0.0]]}, "edges are not pairs"),
        ({"dtypes": ["<f8"]}, "dtypes are not"),
        ({"dtypes": ["<f8", "|O"]}, "dtypes are not"),
        ({"dtypes": ["<f8", "<f4"]}, "belief_1.npy has a wrong size"),
    ],
)
def test_a_header_that_describes_no_such_model_is_refused(changes, complaint, path):
    with_header(path, **changes)
    assert_refused(path, complaint)


def test_a_file_is_refused_wherever_it_is_cut_off(path):
    save(small(), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert_refused(path, "not a model that can be loaded")


def test_a_file_with_any_byte_changed_is_refused_or_means_the_same(path):
    save(small(), path)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert load(path).fingerprint() == small().fingerprint(), place
        except ModelFileError:
            refused += 1
    assert refused > 0.7 * len(whole) / 3


@pytest.mark.parametrize("content", [b"", b"not a zip", pickle.dumps([1, 2]), b"PK\x05\x06" + b"\0" * 18])
def test_a_file_of_something_else_is_refused(content, path):
    path.write_bytes(content)
    assert_refused(path, "not a model that can be loaded")


def test_a_missing_file_and_a_folder_are_refused_by_name(path):
    assert_refused(path, "can't be opened: No such file")
    path.mkdir()
    assert_refused(path, "can't be opened")


def npy(array, **options):
    buffer = BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


class Trap:
    """Unpickling one of these fails the test."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_a_pickled_array_is_refused_and_not_unpickled(path):
    trapped = npy(np.array([[Trap()] * 2] * 3, dtype=object), allow_pickle=True)
    rewrite(path, parts_of(path) | {"belief_0.npy": trapped})
    assert_refused(path, "belief_0.npy has a wrong size")
    right = len(parts_of(path)["belief_0.npy"])
    rewrite(path, parts_of(path) | {"belief_0.npy": trapped[:right].ljust(right, b"\0")})
    assert_refused(path, "not the array that the header promises")


def test_an_array_of_another_shape_or_with_more_than_it_should_have_is_refused(path):
    parts = parts_of(path)
    rewrite(path, parts | {"belief_0.npy": npy(small().beliefs[0].T.copy())})
    assert_refused(path, "belief_0.npy is not the array|wrong size")
    rewrite(path, parts | {"belief_0.npy": parts["belief_0.npy"] + b"\0" * 8})
    assert_refused(path, "belief_0.npy has a wrong size")


def test_missing_and_additional_members_are_refused(path):
    parts = parts_of(path)
    rewrite(path, {k: v for k, v in parts.items() if k != "belief_1.npy"})
    assert_refused(path, "arrays are not those that its header promises")
    rewrite(path, parts | {"belief_2.npy": parts["belief_1.npy"]})
    assert_refused(path, "arrays are not those that its header promises")
    rewrite(path, {k: v for k, v in parts.items() if k != "header.json"})
    assert_refused(path, "it has no header")


def test_compressed_members_are_refused_so_nothing_grows_when_it_is_read(path):
    parts = parts_of(path)
    rewrite(path, parts | {"belief_0.npy": b"\0" * 10**8}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    assert_refused(path, "a member is compressed")


def test_a_member_that_promises_more_than_the_file_holds_is_refused_unread(path, monkeypatch):
    save(small(), path)
    content = bytearray(path.read_bytes())
    place = content.rfind(b"PK\x01\x02")
    content[place + 20 : place + 28] = struct.pack("<II", 4 * 10**9, 4 * 10**9)
    path.write_bytes(content)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("something was read"))
    assert_refused(path, "promises more than it holds")


@pytest.mark.parametrize("header", [b"{", b"\xff\xfe", b"[" * 100_000, b"[1]", b"null", b"9" * 10_000])
def test_a_header_that_is_not_a_json_object_is_refused(header, path):
    rewrite(path, parts_of(path) | {"header.json": header})
    assert_refused(path, "its header is not JSON|its format is not")


def test_a_header_of_many_megabytes_is_refused_unread(path):
    rewrite(path, parts_of(path) | {"header.json": b" " * (1 << 25)})
    assert_refused(path, "its header is too long")
