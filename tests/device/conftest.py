"""Devices that there are wherever their library is: NumPy, strict arrays, torch on processors; a card where there is one."""

import pytest

from stickbreak.device import Device, devices, staging


def needs(name):
    if name != "numpy":
        pytest.importorskip("array_api_compat")
        library = pytest.importorskip("torch" if name in ("cpu", "cuda") else name)
        if name == "cuda" and not library.cuda.is_available():
            pytest.skip("no graphics card")
    return Device.parse(name)


@pytest.fixture(scope="session", params=["numpy", "array_api_strict", "cpu", "cuda"])
def device(request):
    return needs(request.param)


@pytest.fixture(scope="session")
def strict():
    return needs("array_api_strict")


@pytest.fixture(scope="session")
def plain():
    return needs("numpy")


@pytest.fixture
def blocks_of(monkeypatch):
    """A function that leaves a block so many bytes; data no longer stay on devices."""

    def limit(size):
        monkeypatch.setattr(devices, "_block_bytes", lambda device: size)
        monkeypatch.setattr(staging, "STAYING", 0)
        staging._HELD.clear()

    yield limit
    monkeypatch.undo()
    staging._HELD.clear()
