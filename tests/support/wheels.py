"""Wheels made by hand, so that environments can be made without a network, and torch not copied."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch


def write_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write a wheel of some files, named by where they are to be installed."""
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{name}-{version}.dist-info"
    contents = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = [f"{path},sha256={_hash(text)},{len(text)}" for path, text in contents.items()]
    contents[f"{about}/RECORD"] = "\n".join([*listed, f"{about}/RECORD,,", ""])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return wheel


def write_torch(folder: Path, version: str) -> Path:
    """Write a wheel that calls itself torch and leads to that which is here."""
    installed = Path(torch.__file__).parents[1]
    return write_wheel(folder, "torch", version, {"lead_to_torch.pth": f"{installed}\n"})


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
