#!/usr/bin/env python3
"""What clients see of the long work of a server: latencies of SETs or GETs at a fixed rate, without the work and beside it, in turns.

    .ci/beside.py target/release/levelhead                        # all jobs, three rounds each
    .ci/beside.py target/release/levelhead del expire --rounds 5  # some of them
    .ci/beside.py redis-server keys                               # a Redis, to compare with

Jobs: `del` drops a sorted set of a million members, `expire` has 300,000 keys expire at once, `keys` asks for all of a million keys again and again,
`flushall` deletes a million keys, `randomkey` draws from a million keys at half the rate. Latencies are those of an open loop: they count from when a
command was to be sent. It starts servers of its own, on directories that it removes, and ends with an error where a reply is not what it must be."""

import argparse
import gc
import multiprocessing
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

KEYS = 1_000_000
EXPIRING = 300_000
SECONDS = 8
VALUE = b"v" * 100


def command(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def key(n):
    return b"k%08d" % (n % KEYS)


SET, SET_REPLY = command("SET", "a", 1), b"+OK\r\n"
GET_REPLY = b"$%d\r\n%s\r\n" % (len(VALUE), VALUE)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""

    def line(self):
        while b"\r\n" not in self.read:
            self.more()
        line, self.read = self.read.split(b"\r\n", 1)
        if line.startswith(b"-"):
            sys.exit(f"the server says {line!r}")
        return line

    def more(self):
        more = self.socket.recv(1 << 20)
        if not more:
            sys.exit("the server hung up")
        self.read += more

    def ask(self, *words):
        """The reply, if it is one line or one string."""
        self.socket.sendall(command(*words))
        line = self.line()
        if not line.startswith(b"$") or line == b"$-1":
            return line
        length = int(line[1:])
        while len(self.read) < length + 2:
            self.more()
        value, self.read = self.read[:length], self.read[length + 2:]
        return value

    def pipeline(self, commands):
        """Sends commands whose replies are one line each, a thousand at a time."""
        for at in range(0, len(commands), 1_000):
            some = commands[at:at + 1_000]
            self.socket.sendall(b"".join(some))
            for _ in some:
                self.line()

    def swallow(self, length):
        length -= len(self.read)
        self.read = b""
        buffer = bytearray(1 << 20)
        while length > 0:
            got = self.socket.recv_into(buffer, min(length, 1 << 20))
            if got == 0:
                sys.exit("the server hung up")
            length -= got

    def figure(self, name):
        """A number of INFO; none if there is no such name."""
        for line in self.ask("INFO").split(b"\r\n"):
            if line.startswith(name + b":"):
                return int(line.split(b":")[1])
        return None


class Server:
    def __init__(self, program, directory, more):
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.is_redis = "redis" in os.path.basename(program)
        if self.is_redis:
            words = [program, "--port", str(self.port), "--dir", directory, "--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        else:
            words = [program, "serve", os.path.join(directory, "store"), "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(words + more, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.client = Client(self.port)
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("the server does not listen")

    def seconds(self):
        """Processor time."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


def probe(port, what, rate, stop, results):
    """Sends commands at a rate until it is told to stop, and puts their latencies in seconds."""
    gc.disable()
    client = Client(port).socket
    client.setblocking(False)
    reply = SET_REPLY if what == "SET" else GET_REPLY
    begin, sent, read, taken = time.monotonic() + 0.01, 0, b"", []
    while not stop.is_set() or len(taken) < sent:
        due = begin + sent / rate
        if not stop.is_set() and due <= time.monotonic():
            one = SET if what == "SET" else command("GET", key(sent * 7_919))
            sent += 1
            if client.send(one) != len(one):
                sys.exit("the server takes no more commands")
            continue
        wait = 0.1 if stop.is_set() else max(due - time.monotonic(), 0)
        if select.select([client], [], [], wait)[0]:
            read += client.recv(1 << 16)
            now = time.monotonic()
            while len(read) >= len(reply):
                if not read.startswith(reply):
                    sys.exit(f"the server says {read[:200]!r}")
                read = read[len(reply):]
                taken.append(now - (begin + len(taken) / rate))
    results.put(taken)


def beside(server, what, rate, work):
    """Latencies of commands at a rate while some work goes on, and how long that took."""
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    process = multiprocessing.Process(target=probe, args=(server.port, what, rate, stop, results))
    process.start()
    time.sleep(0.2)
    begin = time.monotonic()
    work(server)
    took = time.monotonic() - begin
    stop.set()
    taken = results.get(timeout=120)
    process.join()
    return sorted(taken), took


def wait_until(server, is_done):
    while not is_done():
        time.sleep(0.05)


def load_members(server):
    add = lambda at: command("ZADD", "zz", *(word for n in range(at, at + 100) for word in (n % 1_000, f"m{n:07}")))
    server.client.pipeline([add(at) for at in range(0, KEYS, 100)])


def drop(server):
    before = server.client.figure(b"swept_parts")
    server.client.ask("DEL", "zz")
    if before is not None:
        wait_until(server, lambda: server.client.figure(b"swept_parts") >= before + 2 * KEYS)


def load_expiring(server):
    server.before = server.client.figure(b"expired_keys")
    server.at = int(time.time()) + 20
    server.client.pipeline([command("SET", f"e{n:07}", "v", "EXAT", server.at) for n in range(EXPIRING)])
    if time.time() >= server.at:
        sys.exit("it took too long to set keys that are to expire")


def expire(server):
    wait_until(server, lambda: server.client.figure(b"expired_keys") >= server.before + EXPIRING)


def load_keys(server):
    if server.client.ask("DBSIZE") != b":%d" % KEYS:
        server.client.ask("FLUSHALL")
        server.client.pipeline([command("SET", key(n), VALUE) for n in range(KEYS)])


def all_keys(server):
    """KEYS for some seconds."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        server.client.socket.sendall(command("KEYS", "k*"))
        if server.client.line() != b"*%d" % KEYS:
            sys.exit("KEYS did not say all")
        server.client.swallow(KEYS * len(b"$9\r\nk00000000\r\n"))


def draw(server):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if not server.client.ask("RANDOMKEY").startswith(b"k"):
            sys.exit("RANDOMKEY said no key")


def flush(server):
    server.client.ask("FLUSHALL")


# What is loaded, what is done beside the probe, what the probe sends, and how often a second.
JOBS = {
    "del": (load_members, drop, "SET", 500),
    "expire": (load_expiring, expire, "SET", 500),
    "keys": (load_keys, all_keys, "GET", 1_000),
    "randomkey": (load_keys, draw, "GET", 1_000),
    "flushall": (load_keys, flush, "SET", 500),
}


def shown(taken):
    at = lambda share: taken[min(int(share * len(taken)), len(taken) - 1)] * 1e3
    return " ".join(f"{at(share):8.2f}" for share in (0.5, 0.99, 0.999, 1))


def run(name, rounds, program, directory, more):
    load, work, what, rate = JOBS[name]
    server = Server(program, directory, more)
    server.client.ask("SET", "a", 1)
    server.client.ask("DEL", "a")
    for number in range(rounds):
        load(server)
        if name == "expire":
            time.sleep(max(server.at - time.time() - SECONDS - 0.5, 0))
        alone, _ = beside(server, what, rate, lambda _: time.sleep(SECONDS))
        if what == "SET":
            server.client.ask("DEL", "a")
        if name == "expire":
            time.sleep(max(server.at - time.time(), 0))
        cores = server.seconds()
        busy, took = beside(server, what, rate, work)
        cores = (server.seconds() - cores) / took
        load_average = os.getloadavg()[0]
        print(f"{name:9} {what} {number} alone  {shown(alone)}  {'':19}load {load_average:.1f}")
        print(f"{name:9} {what} {number} beside {shown(busy)}  {took:6.1f} s {cores:4.1f} cores", flush=True)
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("jobs", nargs="*", help=", ".join(JOBS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", help="where stores are made; else where temporary files are")
    parser.add_argument("--more", default="", help="flags for the server")
    arguments = parser.parse_args()
    unknown = [job for job in arguments.jobs if job not in JOBS]
    if unknown:
        parser.error(f"no such job: {', '.join(unknown)}")
    print("latencies in ms: p50, p99, p99.9, max; how long the work took, and the processor time of the server in it")
    for name in arguments.jobs or JOBS:
        directory = tempfile.mkdtemp(dir=arguments.directory)
        try:
            run(name, arguments.rounds, arguments.program, directory, arguments.more.split())
        finally:
            shutil.rmtree(directory)


main()
