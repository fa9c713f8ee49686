#!/usr/bin/env python3
"""Random commands to a server of ours and to Redis: replies must be the same, byte for byte.

Usage: differential.py OURS REDIS [--seed N] [--rounds N] [--commands N]   (ports on the loopback address; both are emptied)

Each round has a seed of its own. On a difference it is run again, without commands that the difference does not need, and what is
left is printed. `--seed N --rounds 1` replays a round. What Redis leaves open is left out: the order of hashes' fields (replies are
sorted), random picks, names of more bytes than ours may have. So is what docs/serve.md says is otherwise: numbers that are not short in
binary, numbers in hexadecimal.
"""
import argparse
import random
import socket
import sys

KEYS = [b"k1", b"k2", b"k3", b"k4", b"k5"]
FIELDS = [b"a", b"b", b"c", b"d", b"", b"long field"]
# Replies whose order Redis leaves open.
UNORDERED = {b"HGETALL": 2, b"HKEYS": 1, b"HVALS": 1, b"KEYS": 1}
WORDS = [b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR", b"GET", b"KEEPTTL", b"EX", b"PX", b"EXAT", b"PERSIST", b"WITHSCORES", b"REV",
         b"BYSCORE", b"BYLEX", b"LIMIT", b"REPLACE", b"DB", b"MATCH", b"COUNT", b"nonsense"]


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(20)
        self.file = self.socket.makefile("rb")

    def ask(self, words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.read()

    def read(self):
        """A reply as it came, and its parts if it has some."""
        line = self.file.readline()
        kind, count = line[:1], line[1:-2]
        if kind in b"$=" and count != b"-1":
            return line + self.file.read(int(count) + 2), []
        if kind in b"*%~" and count != b"-1":
            parts = [self.read() for _ in range(int(count) * (2 if kind == b"%" else 1))]
            return line + b"".join(part for part, _ in parts), [part for part, _ in parts]
        return line, []


class Draws:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shared_score = self.random.random() < 0.3  # then ranges by name mean something

    def pick(self, *choices):
        return self.random.choice(choices)

    def key(self):
        return self.random.choice(KEYS)

    def field(self):
        return self.random.choice(FIELDS)

    def value(self):
        return self.pick(b"v", b"", b"12", b"-7", b"3.5", b"text with blanks", b"9223372036854775807", b"1e3", b"\x00\xff\r\n",
                         b"%d" % self.random.randrange(100))

    def integer(self):
        return self.pick(*[b"%d" % self.random.randrange(-6, 12) for _ in range(12)], b"x", b"", b"1.5", b"9223372036854775807",
                         b"-9223372036854775808", b"9223372036854775808")

    def float(self):
        return self.pick(b"0.5", b"-1.25", b"3", b"10.5", b"0", b"0.125", b"-0", b"1e2", b"x", b"", b"nan", b"inf")

    def score(self):
        if self.shared_score:
            return b"0"
        return self.pick(b"0", b"1", b"2", b"-1", b"1.5", b"3", b"0.125", b"inf", b"-inf", b"1e20", b"x", b"nan", b"123456789.125")

    def bound(self):
        return self.pick(b"", b"(") + self.pick(b"-inf", b"+inf", b"0", b"1", b"2", b"1.5", b"3", b"x") if self.random.random() < 0.95 else b"[1"

    def name_bound(self):
        return self.pick(b"-", b"+", b"[a", b"(a", b"[b", b"(c", b"[c", b"[d", b"(", b"[", b"a", b"(z")

    def ttl(self):  # far from now, so that nothing expires while it runs
        return self.pick(b"100", b"1000000", b"-1", b"0", b"x", b"9223372036854775807", b"500")

    def some(self, draw, least=0, most=3):
        return [draw() for _ in range(self.random.randrange(least, most + 1))]

    def words(self):
        return [self.random.choice(WORDS) for _ in range(self.random.choice([0, 0, 0, 1, 1, 2]))]

    def limit(self):
        return self.pick([], [], [b"LIMIT", self.integer(), self.integer()])


def time_option(d):
    return d.pick([], [b"EX", d.ttl()], [b"PX", d.ttl()], [b"EXAT", d.pick(b"99999999999", b"x")], [b"PXAT", d.pick(b"99999999999999", b"0")])


def pairs(d, a, b, most=3):
    return [word for _ in range(d.random.randrange(1, most + 1)) for word in (a(), b())]


COMMANDS = {
    # strings
    b"SET": lambda d: [d.key(), d.value()] + d.pick([], [b"NX"], [b"XX"], [b"GET"], [b"KEEPTTL"], d.words()) + time_option(d),
    b"GET": lambda d: [d.key()], b"GETDEL": lambda d: [d.key()], b"GETSET": lambda d: [d.key(), d.value()],
    b"GETEX": lambda d: [d.key()] + d.pick(time_option(d), [b"PERSIST"], d.words()),
    b"SETNX": lambda d: [d.key(), d.value()], b"SETEX": lambda d: [d.key(), d.ttl(), d.value()],
    b"PSETEX": lambda d: [d.key(), d.pick(b"100000", b"0", b"x"), d.value()],
    b"APPEND": lambda d: [d.key(), d.value()], b"STRLEN": lambda d: [d.key()],
    b"GETRANGE": lambda d: [d.key(), d.integer(), d.integer()],
    b"SETRANGE": lambda d: [d.key(), d.pick(b"0", b"1", b"5", b"-1", b"x", b"20"), d.value()],
    b"INCR": lambda d: [d.key()], b"DECR": lambda d: [d.key()], b"INCRBY": lambda d: [d.key(), d.integer()],
    b"DECRBY": lambda d: [d.key(), d.integer()], b"INCRBYFLOAT": lambda d: [d.pick(b"f1", b"f2", b"f3"), d.float()],
    b"MSET": lambda d: pairs(d, d.key, d.value), b"MSETNX": lambda d: pairs(d, d.key, d.value, 2), b"MGET": lambda d: d.some(d.key, 1),
    # hashes
    b"HSET": lambda d: [d.key()] + pairs(d, d.field, d.value), b"HMSET": lambda d: [d.key()] + pairs(d, d.field, d.value),
    b"HSETNX": lambda d: [d.key(), d.field(), d.value()], b"HGET": lambda d: [d.key(), d.field()],
    b"HMGET": lambda d: [d.key()] + d.some(d.field, 1), b"HDEL": lambda d: [d.key()] + d.some(d.field, 1),
    b"HGETALL": lambda d: [d.key()], b"HKEYS": lambda d: [d.key()], b"HVALS": lambda d: [d.key()], b"HLEN": lambda d: [d.key()],
    b"HEXISTS": lambda d: [d.key(), d.field()], b"HSTRLEN": lambda d: [d.key(), d.field()],
    b"HINCRBY": lambda d: [d.key(), d.field(), d.integer()], b"HINCRBYFLOAT": lambda d: [d.pick(b"f3", b"f4"), d.field(), d.float()],
    b"HSCAN": lambda d: [d.pick(b"nothing", d.key()), b"x"], b"HRANDFIELD": lambda d: [b"nothing"] + d.some(d.integer, 0, 1),
    # sorted sets
    b"ZADD": lambda d: [d.key()] + d.words() + pairs(d, d.score, d.field), b"ZINCRBY": lambda d: [d.key(), d.score(), d.field()],
    b"ZREM": lambda d: [d.key()] + d.some(d.field, 1), b"ZSCORE": lambda d: [d.key(), d.field()],
    b"ZMSCORE": lambda d: [d.key()] + d.some(d.field, 1), b"ZCARD": lambda d: [d.key()],
    b"ZRANK": lambda d: [d.key(), d.field()], b"ZREVRANK": lambda d: [d.key(), d.field()],
    b"ZCOUNT": lambda d: [d.key(), d.bound(), d.bound()], b"ZLEXCOUNT": lambda d: [d.key(), d.name_bound(), d.name_bound()],
    b"ZRANGE": lambda d: d.pick(
        [d.key(), d.integer(), d.integer()] + [word for word in d.words() if word != b"BYSCORE"],
        [d.key(), d.bound(), d.bound(), b"BYSCORE"] + d.pick([], [b"REV"]) + d.limit() + d.pick([], [b"WITHSCORES"]),
        [d.key(), d.name_bound(), d.name_bound(), b"BYLEX"] + d.pick([], [b"REV"]) + d.limit() + d.words()),
    b"ZREVRANGE": lambda d: [d.key(), d.integer(), d.integer()] + d.pick([], [b"WITHSCORES"], d.words()),
    b"ZRANGEBYSCORE": lambda d: [d.key(), d.bound(), d.bound()] + d.limit() + d.pick([], [b"WITHSCORES"], d.words()),
    b"ZREVRANGEBYSCORE": lambda d: [d.key(), d.bound(), d.bound()] + d.limit() + d.pick([], [b"WITHSCORES"]),
    b"ZRANGEBYLEX": lambda d: [d.key(), d.name_bound(), d.name_bound()] + d.limit() + d.words(),
    b"ZREVRANGEBYLEX": lambda d: [d.key(), d.name_bound(), d.name_bound()] + d.limit(),
    b"ZPOPMIN": lambda d: [d.key()] + d.some(d.integer, 0, 1), b"ZPOPMAX": lambda d: [d.key()] + d.some(d.integer, 0, 2),
    b"ZREMRANGEBYRANK": lambda d: [d.key(), d.integer(), d.integer()],
    b"ZREMRANGEBYSCORE": lambda d: [d.key(), d.bound(), d.bound()],
    b"ZREMRANGEBYLEX": lambda d: [d.key(), d.name_bound(), d.name_bound()],
    b"ZSCAN": lambda d: [d.pick(b"nothing", d.key()), b"x"], b"ZRANDMEMBER": lambda d: [b"nothing"] + d.some(d.integer, 0, 1),
    # keys
    b"DEL": lambda d: d.some(d.key, 1), b"EXISTS": lambda d: d.some(d.key, 1), b"TYPE": lambda d: [d.key()],
    b"RENAME": lambda d: [d.key(), d.key()], b"RENAMENX": lambda d: [d.key(), d.key()],
    b"COPY": lambda d: [d.key(), d.key()] + d.pick([], [b"REPLACE"], [b"DB", b"0"], d.words()),
    b"EXPIRE": lambda d: [d.key(), d.ttl()] + d.pick([], d.words()), b"PEXPIREAT": lambda d: [d.key(), d.pick(b"99999999999999", b"1", b"x")] + d.words(),
    b"PERSIST": lambda d: [d.key()], b"TTL": lambda d: [d.key()], b"PEXPIRETIME": lambda d: [b"nothing"], b"TOUCH": lambda d: d.some(d.key, 1),
    b"KEYS": lambda d: [d.pick(b"*", b"k?", b"k[1-3]", b"[^k]*", b"k1", b"\\k*")], b"DBSIZE": lambda d: [],
    # the rest
    b"MULTI": lambda d: [], b"EXEC": lambda d: [], b"DISCARD": lambda d: [], b"WATCH": lambda d: d.some(d.key, 1), b"UNWATCH": lambda d: [],
    b"PING": lambda d: d.some(d.value, 0, 2), b"ECHO": lambda d: d.some(d.value, 0, 2), b"SELECT": lambda d: [d.pick(b"0", b"x")],
    b"NOSUCH": lambda d: d.some(d.field),
}
# What differs and is meant to: see docs/serve.md.
OURS_ONLY = {b"WATCH"}  # may be told of a change that was none; left out of rounds with EXEC


def draw(d):
    name = d.random.choice(list(COMMANDS))
    if name in (b"MULTI", b"DISCARD", b"WATCH", b"NOSUCH") and d.random.random() < 0.7:
        name = b"EXEC"
    words = [name] + COMMANDS[name](d)
    if not d.shared_score and (b"LEX" in name or b"BYLEX" in words):
        return draw(d)  # which members lie within is open where scores differ
    chance = d.random.random()
    if chance < 0.01 and len(words) > 1:
        words.pop()
    elif chance < 0.02 and name not in (b"ZRANK", b"ZREVRANK", b"EXEC"):  # ranks take one more since 7.2
        words.append(b"more")
    return words


def normal(words, reply):
    """A reply without what Redis leaves open."""
    whole, parts = reply
    step = UNORDERED.get(words[0].upper())
    if step is None or not parts or len(parts) % step:
        return whole
    return b"".join(sorted(b"".join(parts[at:at + step]) for at in range(0, len(parts), step)))


def is_open(words, ours, theirs):
    """Whether a difference is one that docs/serve.md names."""
    if words[0] == b"TTL" and ours[:1] == theirs[:1] == b":":
        return abs(int(ours[1:-2]) - int(theirs[1:-2])) <= 2  # they were asked one after the other
    return False


def run(ours, theirs, commands, protocol):
    """The number of the first command that is answered differently, and both replies."""
    for server in (ours, theirs):
        server.ask([b"RESET"])
        server.ask([b"FLUSHALL"])
        if protocol == 3:
            server.ask([b"HELLO", b"3"])
    kept = []
    for number, words in enumerate(commands):
        a, b = ours.ask(words), theirs.ask(words)
        left, right = normal(words, a), normal(words, b)
        if words[0] == b"EXEC" and len(a[1]) == len(b[1]) == len(kept):
            differ = [(x, y) for w, x, y in zip(kept, a[1], b[1]) if x != y and w[0].upper() not in UNORDERED and not is_open(w, x, y)]
            left, right = (left, left) if not differ else differ[0]
        if b[0] == b"+QUEUED\r\n":
            kept.append(words)
        elif words[0] in (b"EXEC", b"DISCARD"):
            kept = []
        if left != right and not is_open(words, left, right):
            return number, left, right
    return None


def shrink(ours, theirs, commands, protocol):
    """Fewer commands that still end in a difference."""
    size = max(1, len(commands) // 2)
    while size:
        at = 0
        while at < len(commands) - 1:
            fewer = commands[:at] + commands[min(at + size, len(commands) - 1):]
            found = run(ours, theirs, fewer, protocol)
            if found and len(fewer) < len(commands):
                commands = fewer[:found[0] + 1]
            else:
                at += size
        size //= 2
    return commands


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours", type=int)
    parser.add_argument("redis", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--commands", type=int, default=400)
    parser.add_argument("--go-on", action="store_true", help="do not end at the first difference")
    asked = parser.parse_args()
    ours, theirs = Connection(asked.ours), Connection(asked.redis)
    differences = 0
    for seed in range(asked.seed, asked.seed + asked.rounds):
        d = Draws(seed)
        commands, protocol = [draw(d) for _ in range(asked.commands)], d.pick(2, 3)
        has_exec = any(words[0] == b"EXEC" for words in commands)
        commands = [words for words in commands if not (has_exec and words[0] in OURS_ONLY)]
        found = run(ours, theirs, commands, protocol)
        if not found:
            continue
        differences += 1
        commands = shrink(ours, theirs, commands[:found[0] + 1], protocol)
        number, left, right = run(ours, theirs, commands, protocol)
        print(f"seed {seed}, version {protocol} (replay: --seed {seed} --rounds 1 --commands {asked.commands}):")
        for words in commands[:number + 1]:
            print("  ", words)
        print("   ours: ", left)
        print("   Redis:", right)
        if not asked.go_on:
            break
    if differences:
        sys.exit(1)
    print(f"differential: {asked.rounds} rounds of {asked.commands} commands from seed {asked.seed} on: all replies are the same")


main()
