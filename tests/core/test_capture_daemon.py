"""The daemon's side of Kineto's protocol: what it answers, whom, and that nobody can hang or break it."""

from __future__ import annotations

import array
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import ROOT
from tests.stand_in import StandIn, message, options_in, registration, request
from tracelane.core.base.errors import UsageError
from tracelane.core.capture.daemon import (
    OTHER_USER,
    TOO_MANY,
    KinetoClient,
    KinetoDaemon,
    SocketHeldError,
    address_of,
)
from tracelane.core.capture.protocol import (
    MAX_MESSAGE,
    MAX_PIDS,
    ConfigRequest,
    MessageError,
    RecordingPlan,
    Registration,
    parse_message,
    path_problem,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="PyTorch asks a daemon on Linux alone")
TICK_S = 0.05
CONFIG = "ACTIVITIES_LOG_FILE=/tmp/x.json\n"


@pytest.fixture
def address() -> bytes:
    """An address of this test's own."""
    return f"\0tracelane-{os.urandom(8).hex()}\0".encode()


@pytest.fixture
def daemon(address: bytes) -> Iterator[KinetoDaemon]:
    """A daemon that has every process record."""
    with KinetoDaemon(lambda _: CONFIG, address) as one:
        yield one


def test_messages_are_read_as_kineto_writes_them() -> None:
    """A registration and a request say what they hold; one that is recording cannot record."""
    assert parse_message(registration(7, 2, 99)) == Registration(2, 7, 99)
    assert parse_message(request(7, 6, 1, job=-3)) == ConfigRequest(3, (7, 6, 1), -3)
    assert [ConfigRequest(kinds, (7,), 0).can_record for kinds in range(4)] == [False, False, True, True]


WRONG = {
    b"": "shorter",
    b"x" * 39: "shorter",
    request(7) + b"x": "another size",
    request(7)[:-1]: "another size",
    message("ctxt", b"1234"): "another size",
    message("ctxt", b"x" * 17): "another size",
    message("reqx", b""): "unknown type",
    message("req", b"x" * 15): "without its head",
    request(): "number of processes",
    request(*range(1, MAX_PIDS + 2)): "number of processes",
    message("req", request(7)[40:44] + b"\xff" * 4 + request(7)[48:]): "number of processes",
    request(0): "no process",
    request(-5): "no process",
}


@pytest.mark.parametrize("data", WRONG, ids=[f"{number}" for number in range(len(WRONG))])
def test_wrong_sizes_are_said(data: bytes) -> None:
    """No size or number is believed that the datagram does not have."""
    with pytest.raises(MessageError, match=WRONG[data]):
        parse_message(data)


@given(st.binary(max_size=MAX_MESSAGE + 1), st.sampled_from([b"", request(7), registration(7)]))
def test_any_bytes_are_a_message_or_none(data: bytes, begun: bytes) -> None:
    """Whatever comes is a message or refused, and nothing else happens."""
    try:
        said = parse_message(begun[: len(data)] + data)
    except MessageError:
        return
    assert isinstance(said, Registration) or (0 < len(said.pids) <= MAX_PIDS and said.pids[0] > 0)


def test_plans_are_written_as_kineto_reads_them() -> None:
    """A time has a start and a duration, steps have a step and a number, and dynolog does the same."""
    timed = RecordingPlan(duration_ms=250, details=("shapes", "stacks"))
    options = options_in(timed.config("/tmp/a.json", 12345))
    assert options["PROFILE_START_TIME"] == "12345" and options["ACTIVITIES_DURATION_MSECS"] == "250"
    assert options["PROFILE_REPORT_INPUT_SHAPES"] == options["PROFILE_WITH_STACK"] == "true"
    assert "PROFILE_WITH_FLOPS" not in options and "ACTIVITIES_ITERATIONS" not in options
    stepped = options_in(RecordingPlan(steps=5, first_step=40).config("/tmp/a.json", 12345))
    assert stepped["ACTIVITIES_ITERATIONS"] == "5" and stepped["PROFILE_START_ITERATION"] == "40"
    assert not {"PROFILE_START_TIME", "ACTIVITIES_DURATION_MSECS"} & set(stepped)
    command = timed.dyno_command("/a b", (7, 8))
    assert "--log-file '/a b/trace.json'" in command and "--duration-ms 250 --pids 7,8" in command
    assert "--record-shapes" in command and "--with-stacks" in command


@pytest.mark.parametrize(
    ("folder", "is_told"),
    [
        *(("/tmp/a b-ü", True), ("/tmp/a\nPROFILE_WITH_STACK=true", False), ("/tmp/a=b", False)),
        *(("/tmp/a#b", False), ("/tmp/x.json.d", False), ("/tmp/a\\b", False), ("/tmp/a ", False)),
    ],
)
def test_folders_that_kineto_would_misread_are_refused(folder: str, is_told: bool) -> None:
    """No name of a folder ends a line of the configuration, adds one, or takes the process's number."""
    assert (path_problem(folder) == "") == is_told


def test_a_process_is_told_once(daemon: KinetoDaemon, address: bytes) -> None:
    """The first request gets the configuration, later ones nothing; while it records it gets none either."""
    with StandIn(address) as process:
        process.ask(kinds=1)
        daemon.serve(TICK_S)
        assert process.answer() == b"" and not daemon.clients[0].can_record
        answers = []
        for _ in range(2):
            process.ask(job=17)
            daemon.serve(TICK_S)
            answers.append(process.answer())
    assert answers == [CONFIG.encode(), b""]
    (client,) = daemon.clients
    assert (client.pid, client.own_pid, client.job) == (os.getpid(), os.getpid(), 17)
    assert os.getppid() in client.all_pids


def test_registrations_are_counted_by_device_and_job(daemon: KinetoDaemon, address: bytes) -> None:
    """A registration is answered by how many processes of its job use the device."""
    with StandIn(address) as process:
        process.send(registration(os.getpid(), device=3, job=5))
        daemon.serve(TICK_S)
        assert process.answer() == (1).to_bytes(4, sys.byteorder)
    assert daemon.clients[0].device == 3


def test_an_answer_that_does_not_arrive_is_given_again(daemon: KinetoDaemon, address: bytes) -> None:
    """A process that has gone, or has no name, holds up nobody, and counts as not told."""
    with StandIn(address) as process:
        process.ask()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as nameless:
        nameless.sendto(request(os.getpid()), address)
        daemon.serve(TICK_S)
    assert not daemon.clients[0].has_config
    with StandIn(address) as process:
        process.ask()
        daemon.serve(TICK_S)
        assert process.answer() == CONFIG.encode()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_hostile_messages_change_nothing(daemon: KinetoDaemon, address: bytes) -> None:
    """What is too long, wrong, or carries descriptors is dropped and counted; the next one is answered."""
    with StandIn(address) as process, open(os.devnull, "rb") as file:
        process.socket.setblocking(True)
        count = _open_files()
        for data in (b"", b"x" * 100_000, request(*range(1, 200)), *WRONG):
            process.send(data)
            daemon.serve(TICK_S / 10)
        fds = array.array("i", [file.fileno()] * 200)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
        process.socket.sendmsg([message("zzz", b"")], rights, 0, address)
        daemon.serve(TICK_S)
        assert _open_files() == count and not daemon.clients
        assert sum(daemon.refused.values()) == len(WRONG) + 4
        assert daemon.refused["too long"] >= 2
        process.ask()
        daemon.serve(TICK_S)
        assert process.config()


def test_a_process_that_reads_nothing_holds_up_nobody(daemon: KinetoDaemon, address: bytes) -> None:
    """Where a queue of answers is full they are dropped, and others are served."""
    with StandIn(address) as deaf, StandIn(address) as other:
        for _ in range(50):
            for _ in range(5):
                deaf.ask(kinds=1)
            daemon.serve(TICK_S / 50)
        other.ask()
        daemon.serve(TICK_S)
        assert other.config()


def test_a_flood_ends_no_later(daemon: KinetoDaemon, address: bytes) -> None:
    """Serving ends after its time however much comes, and who asks in between is answered."""
    stop = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            while not stop.is_set():
                try:
                    sender.sendto(b"x" * 2000, socket.MSG_DONTWAIT, address)
                except OSError:
                    stop.wait(0.0001)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        with StandIn(address) as process:
            process.socket.setblocking(True)
            asking = threading.Thread(target=process.ask)  # waits until there is room
            asking.start()
            while not daemon.clients:
                daemon.serve(TICK_S)
            asking.join()
            assert process.answer() == CONFIG.encode()
    finally:
        stop.set()
        thread.join()
    assert daemon.refused["too long"] > 0


ASKS = "import sys; from tests.stand_in import StandIn; StandIn(bytes.fromhex(sys.argv[1])).ask()"


def _ask_in_process(address: bytes, **how: int) -> None:
    subprocess.run([sys.executable, "-c", ASKS, address.hex()], cwd=ROOT, check=True, **how)  # type: ignore[call-overload]


@pytest.mark.slow
def test_processes_are_bounded(address: bytes) -> None:
    """Of more processes than there is room for the later ones are refused, and counted."""
    with KinetoDaemon(lambda _: "", address, max_clients=2) as daemon:
        for _ in range(3):
            _ask_in_process(address)
        daemon.serve(TICK_S)
        assert len(daemon.clients) == 2 and daemon.refused == {TOO_MANY: 1}


NOBODY = 65534


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_not_answered(daemon: KinetoDaemon, address: bytes) -> None:
    """Who sent a message says the kernel; another user's processes are neither answered nor listed."""
    code = (
        "import socket, sys\n"
        "one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "one.bind(b'')\n"
        f"one.sendto(bytes.fromhex({request(os.getpid()).hex()!r}), bytes.fromhex(sys.argv[1]))\n"
        "one.settimeout(1)\n"
        "try:\n    print(one.recv(4096))\nexcept TimeoutError:\n    print('nothing')\n"
    )
    with subprocess.Popen(
        ["/usr/bin/env", "python3", "-c", code, address.hex()], stdout=subprocess.PIPE, user=NOBODY, cwd="/"
    ) as process:
        while process.poll() is None:
            daemon.serve(TICK_S)
        assert process.stdout is not None and process.stdout.read().strip() == b"nothing"
    assert not daemon.clients and daemon.refused == {OTHER_USER: 1}


def test_a_socket_that_is_held_is_said(daemon: KinetoDaemon, address: bytes) -> None:
    """Of two daemons the second is told which process has the socket."""
    second = KinetoDaemon(lambda _: "", address)
    with pytest.raises(SocketHeldError, match=f"belongs to process {os.getpid()}"):
        second.__enter__()


@pytest.fixture
def short_folder() -> Iterator[str]:
    """A folder whose name has room for a socket's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


def test_a_socket_in_a_folder_is_taken_over(short_folder: str) -> None:
    """A socket file that a daemon left is replaced, one that is listened on is not; none is left behind."""
    path = address_of(short_folder)
    assert isinstance(path, str)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(path)
    clients: list[KinetoClient] = []

    def answer(client: KinetoClient) -> str:
        clients.append(client)
        return ""

    with KinetoDaemon(answer, path) as daemon:
        assert os.stat(path).st_mode & 0o777 == 0o600
        with pytest.raises(SocketHeldError):
            KinetoDaemon(answer, path).__enter__()
        with StandIn(path) as process:
            process.ask()
            daemon.serve(TICK_S)
            assert process.answer() == b"" and len(clients) == 1
    assert not os.path.exists(path)


def test_a_folder_that_cannot_hold_a_socket_is_said() -> None:
    """A name that is too long, or a folder that is not there, is one clear line."""
    for folder in ("/tmp/" + "x" * 200, "/nowhere/at/all"):
        with pytest.raises(UsageError, match="cannot listen"):
            KinetoDaemon(lambda _: "", address_of(folder)).__enter__()


def test_elsewhere_than_on_linux_it_is_said(monkeypatch: pytest.MonkeyPatch, address: bytes) -> None:
    """Other systems have no such socket: that is one clear line."""
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="needs Linux"):
        KinetoDaemon(lambda _: "", address).__enter__()
