#!/usr/bin/env python3
"""Sends GETs to a server of ours, all of them before it reads the first reply, and says how long that takes and what memory the server holds meanwhile.

    .ci/pipelines.py 127.0.0.1:6379                   # TCP
    .ci/pipelines.py 127.0.0.1:6380 --tls             # TLS; the certificate is not checked
    .ci/pipelines.py /tmp/lh.sock --gets 100000       # a Unix socket

It sets the key `pipelines`. It ends with an error where a reply is not the value, or nothing moves for a minute."""

import argparse
import socket
import ssl
import sys
import time

VALUE = b"v" * 1000
GET = b"*2\r\n$3\r\nGET\r\n$9\r\npipelines\r\n"
SET = b"*3\r\n$3\r\nSET\r\n$9\r\npipelines\r\n$1000\r\n" + VALUE + b"\r\n"
REPLY = b"$1000\r\n" + VALUE + b"\r\n"


def connect(address, tls):
    if "/" in address:
        client = socket.socket(socket.AF_UNIX)
        client.connect(address)
    else:
        host, port = address.rsplit(":", 1)
        client = socket.create_connection((host, int(port)))
    client.settimeout(60)
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        client = context.wrap_socket(client)
    return client


def exactly(client, length):
    parts = []
    while length > 0:
        part = client.recv(min(length, 1 << 20))
        if not part:
            sys.exit(f"the server hung up after {b''.join(parts)[-200:]!r}")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def held(client):
    """Bytes in the buffers of all clients, by the server's own count."""
    client.sendall(b"INFO clients\r\n")
    said = b""
    while not said.endswith(b"\r\n") or b"client_buffer_bytes:" not in said:
        said += client.recv(1 << 16)
    return int(said.split(b"client_buffer_bytes:")[1].split(b"\r\n")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--gets", type=int, default=2_000_000)
    arguments = parser.parse_args()
    client, watch = (connect(arguments.address, arguments.tls) for _ in range(2))
    client.sendall(SET)
    assert exactly(client, 5) == b"+OK\r\n"
    begin, most = time.monotonic(), 0
    left = arguments.gets
    while left > 0:
        count = min(left, 20_000)
        client.sendall(GET * count)
        left -= count
        most = max(most, held(watch))
    sent = time.monotonic()
    left = arguments.gets
    while left > 0:
        count = min(left, 1_000)
        if (said := exactly(client, len(REPLY) * count)) != REPLY * count:
            at = next(n for n in range(count) if not said.startswith(REPLY, n * len(REPLY)))
            sys.exit(f"reply {arguments.gets - left + at} is {said[at * len(REPLY):][:200]!r}")
        left -= count
        if left % 100_000 == 0:
            most = max(most, held(watch))
    taken = time.monotonic()
    print(f"{arguments.gets} GETs sent in {sent - begin:.1f} s, then replies of {arguments.gets * len(REPLY) >> 20} MiB"
          f" read in {taken - sent:.1f} s; {most >> 20} MiB in buffers at most")


main()
