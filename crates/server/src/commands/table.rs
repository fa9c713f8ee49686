//! The table of all commands.

use super::command::{At, Group, Spec, Table};
use super::{
    connection, hashes, keyspace, scans, scripts, server, sorted_set_ranges, sorted_sets, strings,
    transactions,
};

macro_rules! commands {
    ($($name:literal $arity:literal $group:ident $access:ident $keys:ident $run:expr, $summary:literal;)*) => {
        /// All commands, sorted by name.
        pub(crate) static COMMANDS: Table = Table(&[$(Spec {
            name: $name,
            arity: $arity,
            group: Group::$group,
            is_write: commands!(@ $access),
            keys: At::$keys,
            summary: $summary,
            run: $run,
        }),*]);
    };
    (@ read) => { false };
    (@ write) => { true };
}

commands! {
    "APPEND" 3 String write First strings::append,
        "Appends a value to a string and returns its new length.";
    "AUTH" -2 Connection read Nowhere connection::auth, "Authenticates the connection.";
    "CLIENT" -2 Connection read Nowhere connection::client,
        "Names, lists and closes client connections.";
    "CLUSTER" -2 Cluster read Nowhere server::cluster, "Returns the slot map of the cluster.";
    "COMMAND" -1 Server read Nowhere server::command, "Returns details about commands.";
    "CONFIG" -2 Server read Nowhere server::config, "Returns configuration settings.";
    "COPY" -3 Generic write Two keyspace::copy, "Copies the value of a key to another key.";
    "DBSIZE" 1 Server read Nowhere keyspace::dbsize, "Returns the number of keys.";
    "DECR" 2 String write First strings::decr, "Decrements an integer by one.";
    "DECRBY" 3 String write First strings::decrby, "Decrements an integer by a number.";
    "DEL" -2 Generic write All keyspace::del, "Deletes keys.";
    "DISCARD" 1 Transaction read Nowhere transactions::discard, "Discards a transaction.";
    "ECHO" 2 Connection read Nowhere connection::echo, "Returns the given string.";
    "EXEC" 1 Transaction write Nowhere transactions::exec,
        "Executes all commands of a transaction.";
    "EXISTS" -2 Generic read All keyspace::exists, "Returns how many of the given keys exist.";
    "EXPIRE" -3 Generic write First keyspace::expire, "Sets the time to live of a key in seconds.";
    "EXPIREAT" -3 Generic write First keyspace::expireat,
        "Sets the expiration time of a key as a Unix time in seconds.";
    "EXPIRETIME" 2 Generic read First keyspace::expiretime,
        "Returns the expiration time of a key as a Unix time in seconds.";
    "FLUSHALL" -1 Server write Nowhere keyspace::flush, "Deletes all keys.";
    "FLUSHDB" -1 Server write Nowhere keyspace::flush, "Deletes all keys of the database.";
    "GET" 2 String read First strings::get, "Returns the string value of a key.";
    "GETDEL" 2 String write First strings::getdel,
        "Returns the string value of a key and deletes the key.";
    "GETEX" -2 String write First strings::getex,
        "Returns the string value of a key and changes its expiration.";
    "GETRANGE" 4 String read First strings::getrange, "Returns a substring of a string.";
    "GETSET" 3 String write First strings::getset, "Sets a string and returns its old value.";
    "HDEL" -3 Hash write First hashes::hdel, "Deletes fields of a hash.";
    "HELLO" -1 Connection read Nowhere connection::hello,
        "Negotiates the protocol version of the connection.";
    "HEXISTS" 3 Hash read First hashes::hexists, "Returns whether a field exists in a hash.";
    "HGET" 3 Hash read First hashes::hget, "Returns the value of a field of a hash.";
    "HGETALL" 2 Hash read First hashes::hgetall, "Returns all fields and values of a hash.";
    "HINCRBY" 4 Hash write First hashes::hincrby, "Increments an integer in a field of a hash.";
    "HINCRBYFLOAT" 4 Hash write First hashes::hincrbyfloat,
        "Increments a decimal number in a field of a hash.";
    "HKEYS" 2 Hash read First hashes::hkeys, "Returns all field names of a hash.";
    "HLEN" 2 Hash read First hashes::hlen, "Returns the number of fields of a hash.";
    "HMGET" -3 Hash read First hashes::hmget, "Returns the values of several fields of a hash.";
    "HMSET" -4 Hash write First hashes::hmset, "Sets several fields of a hash.";
    "HRANDFIELD" -2 Hash read First scans::hrandfield, "Returns random fields of a hash.";
    "HSCAN" -3 Hash read First scans::hscan, "Iterates over the fields and values of a hash.";
    "HSET" -4 Hash write First hashes::hset,
        "Sets fields of a hash and returns how many were added.";
    "HSETNX" 4 Hash write First hashes::hsetnx,
        "Sets a field of a hash if the field does not exist.";
    "HSTRLEN" 3 Hash read First hashes::hstrlen, "Returns the length of the value of a hash field.";
    "HVALS" 2 Hash read First hashes::hvals, "Returns all values of a hash.";
    "INCR" 2 String write First strings::incr, "Increments an integer by one.";
    "INCRBY" 3 String write First strings::incrby, "Increments an integer by a number.";
    "INCRBYFLOAT" 3 String write First strings::incrbyfloat, "Increments a decimal number.";
    "INFO" -1 Server read Nowhere server::info,
        "Returns information and statistics about the server.";
    "KEYRANGE" -3 Generic read Nowhere keyspace::keyrange,
        "Returns the keys between two bounds, in order.";
    "KEYS" 2 Generic read Nowhere keyspace::keys, "Returns all keys that match a pattern.";
    "LASTSAVE" 1 Server read Nowhere server::lastsave,
        "Returns the current Unix time as that of the last save.";
    "MGET" -2 String read All strings::mget, "Returns the string values of several keys.";
    "MSET" -3 String write Pairs strings::mset, "Sets several keys to strings.";
    "MSETNX" -3 String write Pairs strings::msetnx,
        "Sets several keys to strings if none of the keys exists.";
    "MULTI" 1 Transaction read Nowhere transactions::multi, "Starts a transaction.";
    "OBJECT" -2 Generic read Second keyspace::object, "Returns details about the value of a key.";
    "PERSIST" 2 Generic write First keyspace::persist, "Removes the expiration of a key.";
    "PEXPIRE" -3 Generic write First keyspace::pexpire,
        "Sets the time to live of a key in milliseconds.";
    "PEXPIREAT" -3 Generic write First keyspace::pexpireat,
        "Sets the expiration time of a key as a Unix time in milliseconds.";
    "PEXPIRETIME" 2 Generic read First keyspace::pexpiretime,
        "Returns the expiration time of a key as a Unix time in milliseconds.";
    "PING" -1 Connection read Nowhere connection::ping, "Returns PONG or the given string.";
    "PSETEX" 4 String write First strings::psetex,
        "Sets a string with a time to live in milliseconds.";
    "PTTL" 2 Generic read First keyspace::pttl,
        "Returns the remaining time to live of a key in milliseconds.";
    "QUIT" -1 Connection read Nowhere connection::quit, "Closes the connection.";
    "RANDOMKEY" 1 Generic read Nowhere keyspace::randomkey, "Returns a random key.";
    "READONLY" 1 Cluster read Nowhere connection::readonly,
        "Has no effect, because there are no replicas.";
    "READWRITE" 1 Cluster read Nowhere connection::readonly,
        "Has no effect, because there are no replicas.";
    "RENAME" 3 Generic write Two keyspace::rename, "Renames a key.";
    "RENAMENX" 3 Generic write Two keyspace::renamenx,
        "Renames a key if the new name does not exist.";
    "RESET" 1 Connection read Nowhere connection::reset,
        "Resets the connection to its initial state.";
    "ROLE" 1 Server read Nowhere server::role,
        "Returns the replication role of the server, which is always master.";
    "SCAN" -2 Generic read Nowhere scans::scan, "Iterates over the keys.";
    "SCRIPT" -2 Scripting read Nowhere scripts::script,
        "Answers clients that use scripts, which are not supported.";
    "SELECT" 2 Connection read Nowhere connection::select,
        "Selects a database; only database 0 exists.";
    "SET" -3 String write First strings::set, "Sets a key to a string.";
    "SETEX" 4 String write First strings::setex, "Sets a string with a time to live in seconds.";
    "SETNX" 3 String write First strings::setnx,
        "Sets a key to a string if the key does not exist.";
    "SETRANGE" 4 String write First strings::setrange,
        "Overwrites a part of a string from an offset on.";
    "SLOWLOG" -2 Server read Nowhere server::slowlog,
        "Returns, counts or clears the entries of the slow log.";
    "STRLEN" 2 String read First strings::strlen, "Returns the length of a string.";
    "TIME" 1 Server read Nowhere server::time, "Returns the server time.";
    "TOUCH" -2 Generic read All keyspace::exists, "Returns how many of the given keys exist.";
    "TTL" 2 Generic read First keyspace::ttl,
        "Returns the remaining time to live of a key in seconds.";
    "TYPE" 2 Generic read First keyspace::type_of, "Returns the type of the value of a key.";
    "UNLINK" -2 Generic write All keyspace::del, "Deletes keys.";
    "UNWATCH" 1 Transaction read Nowhere transactions::unwatch, "Forgets all watched keys.";
    "WAIT" 3 Server read Nowhere server::wait,
        "Returns the number of replicas that acknowledged the writes, which is always 0.";
    "WATCH" -2 Transaction read All transactions::watch,
        "Watches keys: EXEC fails if one of them changes.";
    "ZADD" -4 SortedSet write First sorted_sets::zadd,
        "Adds members to a sorted set or updates their scores.";
    "ZCARD" 2 SortedSet read First sorted_sets::zcard,
        "Returns the number of members of a sorted set.";
    "ZCOUNT" 4 SortedSet read First sorted_set_ranges::zcount,
        "Returns the number of members with scores in a range.";
    "ZINCRBY" 4 SortedSet write First sorted_sets::zincrby, "Increments the score of a member.";
    "ZLEXCOUNT" 4 SortedSet read First sorted_set_ranges::zlexcount,
        "Returns the number of members in a lexicographical range.";
    "ZMSCORE" -3 SortedSet read First sorted_sets::zmscore, "Returns the scores of members.";
    "ZPOPMAX" -2 SortedSet write First sorted_set_ranges::zpopmax,
        "Removes and returns the members with the highest scores.";
    "ZPOPMIN" -2 SortedSet write First sorted_set_ranges::zpopmin,
        "Removes and returns the members with the lowest scores.";
    "ZRANDMEMBER" -2 SortedSet read First scans::zrandmember,
        "Returns random members of a sorted set.";
    "ZRANGE" -4 SortedSet read First sorted_set_ranges::zrange,
        "Returns the members in a range of ranks, scores or names.";
    "ZRANGEBYLEX" -4 SortedSet read First sorted_set_ranges::zrangebylex,
        "Returns the members in a lexicographical range.";
    "ZRANGEBYSCORE" -4 SortedSet read First sorted_set_ranges::zrangebyscore,
        "Returns the members with scores in a range.";
    "ZRANK" -3 SortedSet read First sorted_sets::zrank,
        "Returns the rank of a member, by ascending score.";
    "ZREM" -3 SortedSet write First sorted_sets::zrem, "Removes members of a sorted set.";
    "ZREMRANGEBYLEX" 4 SortedSet write First sorted_set_ranges::zremrangebylex,
        "Removes the members in a lexicographical range.";
    "ZREMRANGEBYRANK" 4 SortedSet write First sorted_set_ranges::zremrangebyrank,
        "Removes the members in a range of ranks.";
    "ZREMRANGEBYSCORE" 4 SortedSet write First sorted_set_ranges::zremrangebyscore,
        "Removes the members with scores in a range.";
    "ZREVRANGE" -4 SortedSet read First sorted_set_ranges::zrevrange,
        "Returns the members in a range of ranks, in descending order.";
    "ZREVRANGEBYLEX" -4 SortedSet read First sorted_set_ranges::zrevrangebylex,
        "Returns the members in a lexicographical range, in descending order.";
    "ZREVRANGEBYSCORE" -4 SortedSet read First sorted_set_ranges::zrevrangebyscore,
        "Returns the members with scores in a range, in descending order.";
    "ZREVRANK" -3 SortedSet read First sorted_sets::zrevrank,
        "Returns the rank of a member, by descending score.";
    "ZSCAN" -3 SortedSet read First scans::zscan,
        "Iterates over the members and scores of a sorted set.";
    "ZSCORE" 3 SortedSet read First sorted_sets::zscore, "Returns the score of a member.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        assert!(COMMANDS.all().windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(COMMANDS.find(b"gEt").map(|spec| spec.name), Some("GET"));
        assert!(
            COMMANDS.find(b"GETS").is_none()
                && COMMANDS.find(&[b'a'; 100]).is_none()
                && COMMANDS.find(b"").is_none()
        );
    }

    #[test]
    fn some_need_no_store() {
        for name in
            ["PING", "INFO", "ECHO", "AUTH", "CLIENT", "HELLO", "COMMAND", "MULTI", "DBSIZE"]
        {
            assert!(!COMMANDS.find(name.as_bytes()).expect("it is there").needs_store(), "{name}");
        }
        for name in ["GET", "SET", "EXEC", "WATCH", "SCAN", "FLUSHALL", "RANDOMKEY", "ZRANK"] {
            assert!(COMMANDS.find(name.as_bytes()).expect("it is there").needs_store(), "{name}");
        }
    }

    #[test]
    fn some_work_on_keys() {
        let works =
            |name: &str| COMMANDS.find(name.as_bytes()).expect("it is there").works_on_keys();
        for name in ["GET", "FLUSHDB", "FLUSHALL", "DBSIZE", "KEYS", "WATCH", "RANDOMKEY", "COPY"] {
            assert!(works(name), "{name}");
        }
        for name in
            ["SELECT", "RESET", "HELLO", "AUTH", "PING", "MULTI", "EXEC", "DISCARD", "UNWATCH"]
        {
            assert!(!works(name), "{name}");
        }
    }

    #[test]
    fn keys_among_arguments() {
        let keys = |words: &[&'static [u8]]| {
            let spec = COMMANDS.find(words[0]).expect("it is there");
            spec.keys(words).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(keys(&[b"GET", b"a"]), [b"a"]);
        assert_eq!(keys(&[b"MSET", b"a", b"1", b"b", b"2"]), [b"a", b"b"]);
        assert_eq!(keys(&[b"DEL", b"a", b"b"]), [b"a", b"b"]);
        assert_eq!(keys(&[b"OBJECT", b"ENCODING", b"a"]), [b"a"]);
        assert_eq!(keys(&[b"COPY", b"a", b"b", b"REPLACE"]), [b"a", b"b"]);
        assert!(keys(&[b"OBJECT", b"HELP"]).is_empty());
        assert!(keys(&[b"SCAN", b"0"]).is_empty());
    }
}
