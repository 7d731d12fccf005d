"""Run files as documents, and how those are refused that are none."""

import gzip
import json
from typing import Any

import pytest

from perfci.history.codec import decode, encode
from perfci.history.errors import RunFileError
from perfci.history.model import Run


def document(run: Run) -> Any:
    """A run as the JSON document that is in its file."""
    return json.loads(gzip.decompress(encode(run)))


def refusal(body: object) -> str:
    """The one-line message with which a document (or bytes) is refused."""
    blob = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RunFileError) as caught:
        decode(blob, origin="some/run.json.gz")
    message = str(caught.value)
    assert message.startswith("some/run.json.gz: ")
    assert message.isprintable()
    return message
