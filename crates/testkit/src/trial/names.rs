//! The keys of a trial.

/// The lengths of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// A word, a number and up to 22 more bytes: the lengths that designs are sized for.
    Usual,
    /// 1 to the given number of bytes. All lengths are equally frequent, except lengths with too
    /// few different keys.
    UpTo(usize),
    /// 255 bytes, of which all but the last few are shared.
    Deep,
}

/// The number of one-byte keys in [`Names::UpTo`].
const SHORTEST: usize = 20;

impl Names {
    /// Returns the name of a key. Names differ in length, and their order differs from the order of
    /// key numbers.
    pub fn of(self, key: usize) -> Vec<u8> {
        let scrambled = runtime::mix64(key as u64);
        let longest = match self {
            Self::Usual => {
                let number = scrambled % 1_000_000;
                return format!("user{number:06}.{key}{}", "x".repeat(key % 23)).into_bytes();
            }
            Self::UpTo(longest) => longest,
            Self::Deep => {
                let number = scrambled % 1_000_000;
                return format!("{}{number:06}{key:05}", "p".repeat(244)).into_bytes();
            }
        };
        if key < SHORTEST {
            return vec![b'A' + key as u8];
        }
        // Reversed, so that neighbours by number are not neighbours in key order.
        let mut name = format!("{key:04x}").into_bytes();
        name.reverse();
        let more = (scrambled % (longest.max(name.len()) - name.len() + 1) as u64) as usize;
        name.resize(name.len() + more, b'a' + (scrambled >> 32) as u8 % 26);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_different_and_of_every_length() {
        for names in [Names::Usual, Names::UpTo(4), Names::UpTo(255)] {
            let all: Vec<_> = (0..8_000).map(|key| names.of(key)).collect();
            let different: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "{names:?}");
            let longest = all.iter().map(Vec::len).max();
            assert!(longest <= Some(255), "{names:?}");
            if let Names::UpTo(most) = names {
                assert_eq!(longest, Some(most));
            }
        }
    }
}
