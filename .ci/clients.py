"""What `.ci/clients` asks of redis-py and OpenDAL. Usage: clients.py one|cluster|proxy PORT."""

import sys

import opendal
import redis


def refused(begins, action):
    """The action is refused, in words that begin like that."""
    try:
        action()
    except redis.ResponseError as error:
        assert str(error).startswith(begins), error
        return
    raise SystemExit(f"nothing was refused with {begins}")


def commands(port, protocol):
    r = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    r.flushall()
    with r.pipeline(transaction=False) as pipe:
        for i in range(1000):
            pipe.set(f"key:{i:04}", i)
        assert pipe.execute() == [True] * 1000
    assert r.dbsize() == 1000
    assert sorted(r.scan_iter("key:*", count=37)) == [f"key:{i:04}" for i in range(1000)]
    assert r.mget("key:0001", "nothing") == ["1", None]
    assert r.hset("h", mapping={"a": 1, "b": 2}) == 2 and r.hgetall("h") == {"a": "1", "b": "2"}
    assert r.zadd("z", {"x": 1.5, "y": 2}) == 2
    assert [tuple(pair) for pair in r.zrange("z", 0, -1, withscores=True)] == [("x", 1.5), ("y", 2.0)]
    assert r.set("e", 1, ex=100) and 99 <= r.ttl("e") <= 100
    assert r.type("h") == "hash" and r.info()["levelhead_version"]
    assert r.execute_command("KEYRANGE", "[key:0997", "+", "LIMIT", 0, 3) == ["key:0997", "key:0998", "key:0999"]
    refused("WRONGTYPE", lambda: r.get("h"))


def transactions(port):
    """Without being told so, redis-py makes a transaction of a pipeline."""
    r = redis.Redis(port=port, decode_responses=True)
    r.flushall()
    with r.pipeline() as pipe:
        assert pipe.set("a", 1).incr("a").hset("h", "f", "v").hgetall("h").execute() == [True, 2, 1, {"f": "v"}]
        pipe.watch("a")
        before = int(pipe.get("a"))
        r.set("a", 10)
        pipe.multi()
        pipe.set("a", before + 1)
        try:
            pipe.execute()
            raise SystemExit("what was watched has changed")
        except redis.WatchError:
            pass
    assert r.transaction(lambda pipe: pipe.multi() or pipe.incrby("a", 5), "a") == [15]


def files(port):
    store = opendal.Operator("redis", endpoint=f"tcp://127.0.0.1:{port}")
    for i in range(100):
        store.write(f"file-{i}", b"x" * (i * 100))
    for i in range(100):
        assert store.stat(f"file-{i}").content_length == i * 100
        assert bytes(store.read(f"file-{i}")) == b"x" * (i * 100)
    store.delete("file-1")
    assert not store.exists("file-1") and store.exists("file-2")


def one(port):
    commands(port, 2)
    commands(port, 3)
    transactions(port)
    files(port)


def cluster(port):
    """Three servers with a map: the client finds out where each key is."""
    servers = redis.RedisCluster(host="127.0.0.1", port=port, decode_responses=True)
    for i in range(300):
        assert servers.set(f"cluster:{i}", i)
    assert all(servers.get(f"cluster:{i}") == str(i) for i in range(300))
    assert len({servers.get_node_from_key(f"cluster:{i}").port for i in range(300)}) == 3
    assert servers.mget_nonatomic([f"cluster:{i}" for i in range(300)]) == [str(i) for i in range(300)]
    assert len(list(servers.scan_iter("cluster:*"))) == 300
    assert servers.hset("{tag}:h", "f", 1) == 1 and servers.incr("{tag}:n") == 1


def proxy(port):
    """A proxy hangs up on whoever greets it: so nothing but commands."""
    r = redis.Redis(port=port, protocol=2, driver_info=None, decode_responses=True)
    keys = [f"proxy:{i}" for i in range(300)]
    for i, key in enumerate(keys):
        assert r.set(key, i)
    assert r.mget(keys) == [str(i) for i in range(300)]
    assert r.hset("h", mapping={"a": 1}) == 1 and r.hgetall("h") == {"a": "1"}
    assert r.zadd("z", {"m": 1}) == 1 and r.zrange("z", 0, -1) == ["m"]
    assert r.incr("n") == 1 and r.expire("n", 100) and 99 <= r.ttl("n") <= 100
    assert r.delete(*keys) == 300 and r.get(keys[0]) is None


{"one": one, "cluster": cluster, "proxy": proxy}[sys.argv[1]](int(sys.argv[2]))
print("all as it should be")
