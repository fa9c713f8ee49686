//! The table of all commands.

use super::{
    Call, Outcome, connection, hashes, keyspace, ranges, scans, scripts, server, sorted_sets,
    strings, transactions,
};

/// The group of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    String,
    Generic,
    Hash,
    SortedSet,
    Connection,
    Server,
    Cluster,
    Transaction,
    Scripting,
}

impl Group {
    /// Returns the name for COMMAND DOCS.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::SortedSet => "sorted-set",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Cluster => "cluster",
            Self::Transaction => "transactions",
            Self::Scripting => "scripting",
        }
    }
}

/// The positions of keys among the arguments of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    Nowhere,
    /// The first argument.
    First,
    /// The second argument.
    Second,
    /// The first two arguments.
    Two,
    /// All arguments.
    All,
    /// Every other argument, from the first on.
    Pairs,
}

/// A command.
pub(crate) struct Spec {
    pub name: &'static str,
    /// Number of arguments, including the name; a minimum if negative.
    pub arity: i32,
    pub group: Group,
    pub is_write: bool,
    pub keys: At,
    pub summary: &'static str,
    pub run: fn(&mut Call<'_>) -> Outcome,
}

impl Spec {
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Whether the command is allowed before authentication.
    pub(crate) fn is_for_strangers(&self) -> bool {
        matches!(self.name, "AUTH" | "HELLO" | "QUIT" | "RESET")
    }

    /// Whether the command may block in the store or on a lock.
    pub(crate) fn needs_store(&self) -> bool {
        self.is_write || self.keys != At::Nowhere || self.group == Group::Generic
    }

    /// Whether the command works on the keys of a database. EXEC does so only through its queued
    /// commands.
    pub(crate) fn works_on_keys(&self) -> bool {
        match self.name {
            "EXEC" => false,
            "DBSIZE" => true,
            _ => self.needs_store(),
        }
    }

    /// Returns the positions of the first and the last key (negative: from the end), and the step
    /// between keys.
    pub(crate) fn key_places(&self) -> (i64, i64, i64) {
        match self.keys {
            At::Nowhere => (0, 0, 0),
            At::First => (1, 1, 1),
            At::Second => (2, 2, 1),
            At::Two => (1, 2, 1),
            At::All => (1, -1, 1),
            At::Pairs => (1, -1, 2),
        }
    }

    /// Returns the keys among the arguments.
    pub(crate) fn keys<'a>(&self, arguments: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        let (before, most, step) = match self.keys {
            At::Nowhere => (1, 0, 1),
            At::First => (1, 1, 1),
            At::Second => (2, 1, 1),
            At::Two => (1, 2, 1),
            At::All => (1, usize::MAX, 1),
            At::Pairs => (1, usize::MAX, 2),
        };
        arguments.iter().skip(before).step_by(step).take(most).copied()
    }
}

/// Returns the command of this name; case-insensitive.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut upper = [0; 24];
    let upper = upper.get_mut(..name.len())?;
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    let place = COMMANDS.binary_search_by(|spec| spec.name.as_bytes().cmp(upper)).ok()?;
    Some(&COMMANDS[place])
}

macro_rules! commands {
    ($($name:literal $arity:literal $group:ident $access:ident $keys:ident $run:expr, $summary:literal;)*) => {
        /// Sorted by name.
        pub(crate) static COMMANDS: &[Spec] = &[$(Spec {
            name: $name,
            arity: $arity,
            group: Group::$group,
            is_write: commands!(@ $access),
            keys: At::$keys,
            summary: $summary,
            run: $run,
        }),*];
    };
    (@ read) => { false };
    (@ write) => { true };
}

commands! {
    "APPEND" 3 String write First strings::append, "Appends to a string";
    "AUTH" -2 Connection read Nowhere connection::auth, "Says who the client is";
    "CLIENT" -2 Connection read Nowhere connection::client, "Names, lists and ends connections";
    "CLUSTER" -2 Cluster read Nowhere server::cluster, "Says which server has which slots";
    "COMMAND" -1 Server read Nowhere server::command, "Says which commands there are";
    "CONFIG" -2 Server read Nowhere server::config, "Says how the server is set up";
    "COPY" -3 Generic write Two keyspace::copy, "Copies what a key holds to another one";
    "DBSIZE" 1 Server read Nowhere keyspace::dbsize, "Says how many keys there are";
    "DECR" 2 String write First strings::decr, "Takes one off a number";
    "DECRBY" 3 String write First strings::decrby, "Takes something off a number";
    "DEL" -2 Generic write All keyspace::del, "Removes keys";
    "DISCARD" 1 Transaction read Nowhere transactions::discard, "Forgets the commands since MULTI";
    "ECHO" 2 Connection read Nowhere connection::echo, "Says what it is told";
    "EXEC" 1 Transaction write Nowhere transactions::exec, "Carries out the commands since MULTI, all or none";
    "EXISTS" -2 Generic read All keyspace::exists, "Says how many of the keys are there";
    "EXPIRE" -3 Generic write First keyspace::expire, "Has a key expire in so many seconds";
    "EXPIREAT" -3 Generic write First keyspace::expireat, "Has a key expire at a time in seconds";
    "EXPIRETIME" 2 Generic read First keyspace::expiretime, "Says when a key expires, in seconds";
    "FLUSHALL" -1 Server write Nowhere keyspace::flush, "Removes everything";
    "FLUSHDB" -1 Server write Nowhere keyspace::flush, "Removes everything";
    "GET" 2 String read First strings::get, "Gives a string";
    "GETDEL" 2 String write First strings::getdel, "Gives a string and removes it";
    "GETEX" -2 String write First strings::getex, "Gives a string and changes when it expires";
    "GETRANGE" 4 String read First strings::getrange, "Gives a part of a string";
    "GETSET" 3 String write First strings::getset, "Gives a string and sets another one";
    "HDEL" -3 Hash write First hashes::hdel, "Removes fields of a hash";
    "HELLO" -1 Connection read Nowhere connection::hello, "Chooses the version of the protocol";
    "HEXISTS" 3 Hash read First hashes::hexists, "Says whether a hash has a field";
    "HGET" 3 Hash read First hashes::hget, "Gives a field of a hash";
    "HGETALL" 2 Hash read First hashes::hgetall, "Gives all fields of a hash and their values";
    "HINCRBY" 4 Hash write First hashes::hincrby, "Adds to a number in a field of a hash";
    "HINCRBYFLOAT" 4 Hash write First hashes::hincrbyfloat, "Adds to a number with a fraction in a field of a hash";
    "HKEYS" 2 Hash read First hashes::hkeys, "Gives the names of all fields of a hash";
    "HLEN" 2 Hash read First hashes::hlen, "Says how many fields a hash has";
    "HMGET" -3 Hash read First hashes::hmget, "Gives fields of a hash";
    "HMSET" -4 Hash write First hashes::hmset, "Sets fields of a hash";
    "HRANDFIELD" -2 Hash read First scans::hrandfield, "Gives fields of a hash, drawn at random";
    "HSCAN" -3 Hash read First scans::hscan, "Gives fields of a hash and their values, some at a time";
    "HSET" -4 Hash write First hashes::hset, "Sets fields of a hash, and says how many are new";
    "HSETNX" 4 Hash write First hashes::hsetnx, "Sets a field of a hash if it is not there";
    "HSTRLEN" 3 Hash read First hashes::hstrlen, "Says how long a field of a hash is";
    "HVALS" 2 Hash read First hashes::hvals, "Gives the values of all fields of a hash";
    "INCR" 2 String write First strings::incr, "Adds one to a number";
    "INCRBY" 3 String write First strings::incrby, "Adds something to a number";
    "INCRBYFLOAT" 3 String write First strings::incrbyfloat, "Adds to a number with a fraction";
    "INFO" -1 Server read Nowhere server::info, "Says how the server is";
    "KEYRANGE" -3 Generic read Nowhere keyspace::keyrange, "Gives keys in order, between two";
    "KEYS" 2 Generic read Nowhere keyspace::keys, "Gives all keys that match a pattern";
    "LASTSAVE" 1 Server read Nowhere server::lastsave, "Says since when everything is durable";
    "MGET" -2 String read All strings::mget, "Gives strings";
    "MSET" -3 String write Pairs strings::mset, "Sets strings";
    "MSETNX" -3 String write Pairs strings::msetnx, "Sets strings if none of the keys is there";
    "MULTI" 1 Transaction read Nowhere transactions::multi, "Has commands wait for EXEC";
    "OBJECT" -2 Generic read Second keyspace::object, "Says how what a key holds is kept";
    "PERSIST" 2 Generic write First keyspace::persist, "Has a key expire never";
    "PEXPIRE" -3 Generic write First keyspace::pexpire, "Has a key expire in so many milliseconds";
    "PEXPIREAT" -3 Generic write First keyspace::pexpireat, "Has a key expire at a time in milliseconds";
    "PEXPIRETIME" 2 Generic read First keyspace::pexpiretime, "Says when a key expires, in milliseconds";
    "PING" -1 Connection read Nowhere connection::ping, "Answers";
    "PSETEX" 4 String write First strings::psetex, "Sets a string that expires in milliseconds";
    "PTTL" 2 Generic read First keyspace::pttl, "Says how many milliseconds a key has left";
    "QUIT" -1 Connection read Nowhere connection::quit, "Ends the connection";
    "RANDOMKEY" 1 Generic read Nowhere keyspace::randomkey, "Gives some key";
    "READONLY" 1 Cluster read Nowhere connection::readonly, "Has no effect: there are no replicas";
    "READWRITE" 1 Cluster read Nowhere connection::readonly, "Has no effect: there are no replicas";
    "RENAME" 3 Generic write Two keyspace::rename, "Gives what a key holds another key";
    "RENAMENX" 3 Generic write Two keyspace::renamenx, "Gives what a key holds another key, if that one is not there";
    "RESET" 1 Connection read Nowhere connection::reset, "Makes the connection as it was in the beginning";
    "ROLE" 1 Server read Nowhere server::role, "Says that the server is a master";
    "SCAN" -2 Generic read Nowhere scans::scan, "Gives keys, some at a time";
    "SCRIPT" -2 Scripting read Nowhere scripts::script, "Says that there are no scripts";
    "SELECT" 2 Connection read Nowhere connection::select, "Chooses a database, of which there is one";
    "SET" -3 String write First strings::set, "Sets a string";
    "SETEX" 4 String write First strings::setex, "Sets a string that expires in seconds";
    "SETNX" 3 String write First strings::setnx, "Sets a string if the key is not there";
    "SETRANGE" 4 String write First strings::setrange, "Writes over a part of a string";
    "SLOWLOG" -2 Server read Nowhere server::slowlog, "Gives commands that took long";
    "STRLEN" 2 String read First strings::strlen, "Says how long a string is";
    "TIME" 1 Server read Nowhere server::time, "Says what time it is";
    "TOUCH" -2 Generic read All keyspace::exists, "Says how many of the keys are there";
    "TTL" 2 Generic read First keyspace::ttl, "Says how many seconds a key has left";
    "TYPE" 2 Generic read First keyspace::type_of, "Says what a key holds";
    "UNLINK" -2 Generic write All keyspace::del, "Removes keys";
    "UNWATCH" 1 Transaction read Nowhere transactions::unwatch, "Watches no key any more";
    "WAIT" 3 Server read Nowhere server::wait, "Says how many replicas have what was written: none";
    "WATCH" -2 Transaction read All transactions::watch, "Has EXEC do nothing if a key has changed";
    "ZADD" -4 SortedSet write First sorted_sets::zadd, "Gives members of a sorted set scores";
    "ZCARD" 2 SortedSet read First sorted_sets::zcard, "Says how many members a sorted set has";
    "ZCOUNT" 4 SortedSet read First ranges::zcount, "Says how many members have scores between two";
    "ZINCRBY" 4 SortedSet write First sorted_sets::zincrby, "Adds to the score of a member";
    "ZLEXCOUNT" 4 SortedSet read First ranges::zlexcount, "Says how many members have names between two";
    "ZMSCORE" -3 SortedSet read First sorted_sets::zmscore, "Says the scores of members";
    "ZPOPMAX" -2 SortedSet write First ranges::zpopmax, "Gives the members with the highest scores and removes them";
    "ZPOPMIN" -2 SortedSet write First ranges::zpopmin, "Gives the members with the lowest scores and removes them";
    "ZRANDMEMBER" -2 SortedSet read First scans::zrandmember, "Gives members, drawn at random";
    "ZRANGE" -4 SortedSet read First ranges::zrange, "Gives members in order";
    "ZRANGEBYLEX" -4 SortedSet read First ranges::zrangebylex, "Gives members between two names";
    "ZRANGEBYSCORE" -4 SortedSet read First ranges::zrangebyscore, "Gives members with scores between two";
    "ZRANK" -3 SortedSet read First sorted_sets::zrank, "Says how many members come before one";
    "ZREM" -3 SortedSet write First sorted_sets::zrem, "Removes members of a sorted set";
    "ZREMRANGEBYLEX" 4 SortedSet write First ranges::zremrangebylex, "Removes members between two names";
    "ZREMRANGEBYRANK" 4 SortedSet write First ranges::zremrangebyrank, "Removes members between two places";
    "ZREMRANGEBYSCORE" 4 SortedSet write First ranges::zremrangebyscore, "Removes members with scores between two";
    "ZREVRANGE" -4 SortedSet read First ranges::zrevrange, "Gives members, the last ones first";
    "ZREVRANGEBYLEX" -4 SortedSet read First ranges::zrevrangebylex, "Gives members between two names, the last ones first";
    "ZREVRANGEBYSCORE" -4 SortedSet read First ranges::zrevrangebyscore, "Gives members with scores between two, the last ones first";
    "ZREVRANK" -3 SortedSet read First sorted_sets::zrevrank, "Says how many members come behind one";
    "ZSCAN" -3 SortedSet read First scans::zscan, "Gives members and their scores, some at a time";
    "ZSCORE" 3 SortedSet read First sorted_sets::zscore, "Says the score of a member";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(find(b"gEt").map(|spec| spec.name), Some("GET"));
        assert!(find(b"GETS").is_none() && find(&[b'a'; 100]).is_none() && find(b"").is_none());
    }

    #[test]
    fn some_need_no_store() {
        for name in
            ["PING", "INFO", "ECHO", "AUTH", "CLIENT", "HELLO", "COMMAND", "MULTI", "DBSIZE"]
        {
            assert!(!find(name.as_bytes()).expect("it is there").needs_store(), "{name}");
        }
        for name in ["GET", "SET", "EXEC", "WATCH", "SCAN", "FLUSHALL", "RANDOMKEY", "ZRANK"] {
            assert!(find(name.as_bytes()).expect("it is there").needs_store(), "{name}");
        }
    }

    #[test]
    fn some_work_on_keys() {
        let works = |name: &str| find(name.as_bytes()).expect("it is there").works_on_keys();
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
            let spec = find(words[0]).expect("it is there");
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
