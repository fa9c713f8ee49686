//! One of several servers. Each server owns some of the hash slots.
//!
//! The slot map is configured and never changes: there is no consensus, no resharding and no
//! failover. Cluster-aware clients read the map and connect to the server that owns a key; a client
//! that asks another server gets a MOVED error.

use std::fmt::Write;

use crate::fault::Fault;

/// Number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// A server and the slots it owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub id: String,
    pub host: String,
    pub port: u16,
    /// First and last slot of each range.
    pub ranges: Vec<(u16, u16)>,
}

/// The slot map, and this server's place in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cluster {
    pub nodes: Vec<Node>,
    /// Index of this server in `nodes`.
    pub own: usize,
    /// Index in `nodes` of the owner of each slot.
    owners: Vec<u16>,
}

impl Cluster {
    /// Parses a slot map: one line per server (or a part between semicolons) with its address and
    /// slot ranges, as in `127.0.0.1:7001 0-5460,16000`. `own` is the address of this server.
    /// Returns an error if the map is malformed or lacks `own`, or if a slot has no owner or two.
    pub(crate) fn parse(text: &str, own: &str) -> Result<Self, String> {
        let lines = text.split(['\n', ';']).map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let nodes = lines.map(node).collect::<Result<Vec<Node>, String>>()?;
        let mut owners = vec![u16::MAX; SLOTS.into()];
        for (number, node) in (0..).zip(&nodes) {
            for slot in node.ranges.iter().flat_map(|(first, last)| *first..=*last) {
                let owner = &mut owners[usize::from(slot)];
                if *owner != u16::MAX {
                    return Err(format!("two servers have slot {slot}"));
                }
                *owner = number;
            }
        }
        if let Some(slot) = owners.iter().position(|owner| *owner == u16::MAX) {
            return Err(format!("no server has slot {slot}"));
        }
        let own = nodes.iter().position(|node| format!("{}:{}", node.host, node.port) == own);
        let own = own.ok_or("the address that this server listens on is not in the map")?;
        Ok(Self { nodes, own, owners })
    }

    /// Returns an error unless all keys are in the same slot (CROSSSLOT) and this server owns it
    /// (MOVED).
    pub(crate) fn check<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<(), Fault> {
        let mut slot = None;
        for key in keys {
            let its = slot_of(key);
            if *slot.get_or_insert(its) != its {
                return Err(Fault::of_kind(
                    "CROSSSLOT Keys in request don't hash to the same slot",
                ));
            }
        }
        let Some(slot) = slot else { return Ok(()) };
        let owner = usize::from(self.owners[usize::from(slot)]);
        if owner == self.own {
            return Ok(());
        }
        let node = &self.nodes[owner];
        Err(Fault::of_kind(format!("MOVED {slot} {}:{}", node.host, node.port)))
    }

    /// Returns the number of slots that this server owns.
    pub(crate) fn own_slots(&self) -> usize {
        self.owners.iter().filter(|owner| usize::from(**owner) == self.own).count()
    }

    /// Returns the lines of CLUSTER NODES.
    pub(crate) fn lines(&self) -> String {
        let mut lines = String::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let flags = if number == self.own { "myself,master" } else { "master" };
            let (host, port) = (&node.host, node.port);
            let bus = u32::from(port) + 10_000;
            let _ = write!(lines, "{} {host}:{port}@{bus} {flags} - 0 0 1 connected", node.id);
            for (first, last) in &node.ranges {
                let _ = if first == last {
                    write!(lines, " {first}")
                } else {
                    write!(lines, " {first}-{last}")
                };
            }
            lines.push('\n');
        }
        lines
    }
}

fn node(line: &str) -> Result<Node, String> {
    let wrong = || format!("'{line}' is no address with slots, as in '127.0.0.1:7001 0-5460'");
    let (address, ranges) = line.split_once([' ', '=']).ok_or_else(wrong)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let ends = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (ends.0 <= ends.1 && ends.1 < SLOTS).then_some(ends)
    };
    let ranges = ranges.split(',').map(range).collect::<Option<Vec<(u16, u16)>>>();
    Ok(Node { id: id_of(address), host: host.to_owned(), port, ranges: ranges.ok_or_else(wrong)? })
}

/// Derives a node id of 40 hexadecimal digits from an address, so that every server computes the
/// same ids.
fn id_of(address: &str) -> String {
    let mut id = String::new();
    for round in 0..3_u64 {
        let seed = 0xcbf2_9ce4_8422_2325 ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = address
            .bytes()
            .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let _ = write!(id, "{hash:016x}");
    }
    id.truncate(40);
    id
}

/// Returns the slot of a key. Only the part in the first pair of braces is hashed, if it is not
/// empty, so that related keys can share a slot.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let length = key[open + 1..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &key[open + 1..open + 1 + length])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str =
        "# three\n127.0.0.1:1 0-5460\n127.0.0.1:2=5461-10922;127.0.0.1:3 10923-16382, 16383\n";

    #[test]
    fn slots() {
        // The check value of CRC-16/XMODEM, and slots from Redis's documentation.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"a{foo}b"), slot_of(b"foo"));
        assert_ne!(slot_of(b"a{}foo"), slot_of(b""));
    }

    #[test]
    fn a_map_says_where_keys_are() {
        let cluster = Cluster::parse(MAP, "127.0.0.1:2").expect("a good map");
        assert_eq!(cluster.check([&b"foo"[..]]), Err(Fault::of_kind("MOVED 12182 127.0.0.1:3")));
        assert_eq!(cluster.check([]), Ok(()));
        assert!(cluster.check([&b"a"[..], b"b"]).is_err(), "two slots");
        assert_eq!(cluster.own_slots(), 5_462);
        assert_eq!(cluster.lines().lines().count(), 3);
        assert!(cluster.lines().contains("10923-16382 16383"));
        assert!(cluster.nodes.iter().all(|node| node.id.len() == 40));
    }

    #[test]
    fn bad_maps_are_refused() {
        for (map, own) in [
            ("127.0.0.1:1 0-16383", "127.0.0.1:2"),
            ("127.0.0.1:1 0-16382", "127.0.0.1:1"),
            ("127.0.0.1:1 0-16383;127.0.0.1:2 5", "127.0.0.1:1"),
            ("127.0.0.1:1 0-16384", "127.0.0.1:1"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("", "127.0.0.1:1"),
        ] {
            assert!(Cluster::parse(map, own).is_err(), "{map}");
        }
    }
}
