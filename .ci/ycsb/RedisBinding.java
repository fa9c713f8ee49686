import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;

import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB against a server that speaks Redis's protocol, by Jedis. It sends what YCSB's own binding sends, which is in no registry: a
 * record is a hash, and a sorted set has all keys by their Java hash, for scans.
 *
 * Properties: redis.host, redis.port, redis.password, redis.timeout (milliseconds).
 *
 * It is stricter where that helps a test: a record that is not as it should be is an error, not an empty answer.
 */
public class RedisBinding extends DB {
  private static final String INDEX = "_indices";

  private Jedis jedis;

  @Override
  public void init() throws DBException {
    Properties told = getProperties();
    int port = Integer.parseInt(told.getProperty("redis.port", "6379"));
    int timeout = Integer.parseInt(told.getProperty("redis.timeout", "10000"));
    try {
      jedis = new Jedis(told.getProperty("redis.host", "127.0.0.1"), port, timeout);
      String password = told.getProperty("redis.password");
      if (password != null) {
        jedis.auth(password);
      }
      jedis.connect();
    } catch (JedisException e) {
      throw new DBException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    jedis.close();
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return tried("read", () -> {
      if (fields == null) {
        Map<String, String> record = jedis.hgetAll(key);
        StringByteIterator.putAllAsByteIterators(result, record);
        return record.isEmpty() ? Status.NOT_FOUND : Status.OK;
      }
      String[] names = fields.toArray(new String[0]);
      List<String> values = jedis.hmget(key, names);
      for (int i = 0; i < names.length; i++) {
        if (values.get(i) == null) {
          return Status.NOT_FOUND;
        }
        result.put(names[i], new StringByteIterator(values.get(i)));
      }
      return Status.OK;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return tried("insert", () -> {
      boolean isWritten = jedis.hmset(key, StringByteIterator.getStringMap(values)).equals("OK");
      // 0, should the key be there already: a load that is run twice is no error.
      jedis.zadd(INDEX, score(key), key);
      return isWritten ? Status.OK : Status.ERROR;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return tried("update", () -> {
      String said = jedis.hmset(key, StringByteIterator.getStringMap(values));
      return said.equals("OK") ? Status.OK : Status.ERROR;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return tried("delete", () -> {
      boolean wasThere = jedis.del(key) == 1 && jedis.zrem(INDEX, key) == 1;
      return wasThere ? Status.OK : Status.NOT_FOUND;
    });
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return tried("scan", () -> {
      List<String> keys = jedis.zrangeByScore(INDEX, score(start), Double.POSITIVE_INFINITY, 0, count);
      for (String key : keys) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        Status status = read(table, key, fields, record);
        if (!status.isOk()) {
          return status;
        }
        result.add(record);
      }
      // The one that the scan begins with is there.
      return keys.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  private static double score(String key) {
    return key.hashCode();
  }

  /** Something to do with Jedis. */
  private interface Work {
    Status run();
  }

  /** What it comes to; an error is shown, and counts as one. */
  private Status tried(String what, Work work) {
    try {
      return work.run();
    } catch (JedisException e) {
      System.err.println(what + ": " + e);
      return Status.ERROR;
    }
  }
}
