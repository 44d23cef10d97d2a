"""An S3 server of this process, with one bucket, and the variables by which clients find it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

SECRET = "a-secret-only-the-tests-know"
BUCKET = "evals"


@dataclass(frozen=True)
class S3Server:
    """A bucket, as seen without any of our code."""

    url: str
    client: Any

    def put(self, name: str, data: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=name, Body=data)

    def get(self, name: str) -> bytes:
        return self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()

    def names(self, below: str = "") -> list[str]:
        """All objects whose names begin so, in order."""
        listing = self.client.list_objects_v2(Bucket=BUCKET, Prefix=below)
        return [one["Key"] for one in listing.get("Contents", ())]

    def lines(self, below: str) -> list[bytes]:
        """What the files of results say, one after another."""
        files = [self.get(name) for name in self.names(below) if name.endswith(".jsonl")]
        return b"".join(files).splitlines()


@contextmanager
def running_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, text in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "tester"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, text)
    client: Any = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    try:
        yield S3Server(f"http://{host}:{port}", client)
    finally:
        server.stop()
