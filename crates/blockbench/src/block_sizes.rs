//! Several block sizes in one stream: fio's `bssplit` and `bsrange`.

use std::fmt;
use std::fmt::Write;

use block::BLOCK_BYTES;
use report::units::parse_bytes;
use runtime::Rng;
use serde::de;
use serde::de::{Deserialize, Deserializer};

use crate::per_direction::PerDirection;

/// The maximum number of bytes of an operation.
pub(super) const MAX_BLOCK_BYTES: u64 = 16 << 20;
/// The allowed difference of a sum of percentages from 100: thirds are rounded.
const ROUNDING: f64 = 0.2;

/// The shares of sizes in the operations of a stream: `4k/60:64k/30:1m/10`. Sizes without a share
/// divide the rest equally.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockSplit {
    /// Sizes in bytes, and their shares of the operations in percent.
    shares: Vec<(u64, f64)>,
}

/// A range of sizes, all equally frequent: `4k-64k`, in steps of the smallest size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRange {
    /// The smallest size, in bytes.
    pub least: u64,
    /// The largest size, in bytes.
    pub most: u64,
}

impl BlockSplit {
    /// Parses the notation of fio.
    ///
    /// # Errors
    /// Returns the problem as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(':').map(size_and_share).collect::<Result<_, _>>()?;
        let given: f64 = parts.iter().filter_map(|(_, percent)| *percent).sum();
        let open = parts.iter().filter(|(_, percent)| percent.is_none()).count();
        let is_whole = if open > 0 { given < 100.0 } else { (given - 100.0).abs() <= ROUNDING };
        if !is_whole {
            let (rule, rest) =
                if open > 0 { ("less than 100", " for those without") } else { ("100", "") };
            return Err(format!(
                "`{text}`: the shares come to {given} %, and have to come to {rule}{rest}"
            ));
        }
        let rest = (100.0 - given) / open.max(1) as f64;
        let shares = parts.into_iter().map(|(bytes, percent)| (bytes, percent.unwrap_or(rest)));
        Ok(Self { shares: shares.collect() })
    }
}

/// Parses `64k/30`, `64k/` or `64k`.
fn size_and_share(part: &str) -> Result<(u64, Option<f64>), String> {
    let (size, percent) = part.split_once('/').unwrap_or((part, ""));
    let bytes = whole_blocks(size)?;
    if percent.trim().is_empty() {
        return Ok((bytes, None));
    }
    let number = percent.trim().parse::<f64>().ok().filter(|n| (0.0..=100.0).contains(n));
    let number =
        number.ok_or_else(|| format!("`{part}`: a share is a percentage from 0 to 100"))?;
    Ok((bytes, Some(number)))
}

fn whole_blocks(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let is_right =
        bytes > 0 && bytes.is_multiple_of(u64::from(BLOCK_BYTES)) && bytes <= MAX_BLOCK_BYTES;
    is_right
        .then_some(bytes)
        .ok_or_else(|| format!("`{text}`: allowed are multiples of 4096 up to 16 MiB"))
}

impl BlockRange {
    /// Parses the notation of fio.
    ///
    /// # Errors
    /// Returns the problem as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bounds = text.split_once('-').or_else(|| text.split_once(':'));
        let (least, most) =
            bounds.ok_or_else(|| format!("`{text}` is no range of sizes: 4k-64k is one"))?;
        let (least, most) = (whole_blocks(least)?, whole_blocks(most)?);
        if most < least || !most.is_multiple_of(least) {
            return Err(format!("`{text}`: the largest has to be a multiple of the smallest"));
        }
        Ok(Self { least, most })
    }
}

impl fmt::Display for BlockSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (bytes, percent)) in self.shares.iter().enumerate() {
            let separator = if i > 0 { ":" } else { "" };
            write!(f, "{separator}{}/{}", short(*bytes), (percent * 100.0).round() / 100.0)?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", short(self.least), short(self.most))
    }
}

/// Formats bytes in the notation of fio.
pub(super) fn short(bytes: u64) -> String {
    let mut text = String::new();
    let (unit, letter) =
        if bytes.is_multiple_of(1 << 20) { (1 << 20, 'm') } else { (1 << 10, 'k') };
    write!(text, "{}{letter}", bytes / unit).expect("a string takes any text");
    text
}

/// A type for sizes of operations that fio writes as text.
pub(super) trait FioSizes: Clone + Sized {
    /// Parses the notation of fio.
    fn read(text: &str) -> Result<Self, String>;
}

impl FioSizes for BlockSplit {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl FioSizes for BlockRange {
    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

/// Deserializes sizes by direction: `64k/40:1m/60,1m/100` is one split for reads, and one for
/// writes and trims.
pub(super) fn of_directions<'de, T: FioSizes, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PerDirection<T>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = T::read(text.split(',').next().unwrap_or_default())
        .and_then(|first| PerDirection::parse(&text, &first, T::read));
    parsed.map(Some).map_err(de::Error::custom)
}

/// The sizes of a stream's operations, in blocks.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sizes {
    /// One size for all operations.
    One(u64),
    /// Sizes, each with the sum of the shares up to and including it, from 0 to 1.
    Split(Vec<(u64, f64)>),
    /// Multiples of the smallest size, from 1 to `steps` times.
    Range { least: u64, steps: u64 },
}

impl Sizes {
    pub(super) fn one(bytes: u64) -> Self {
        Self::One(bytes / u64::from(BLOCK_BYTES))
    }

    pub(super) fn split(split: &BlockSplit) -> Self {
        let mut sum = 0.0;
        let shares = split.shares.iter().map(|(bytes, percent)| {
            sum += percent / 100.0;
            (bytes / u64::from(BLOCK_BYTES), sum)
        });
        Self::Split(shares.collect())
    }

    pub(super) fn range(range: BlockRange) -> Self {
        let least = range.least / u64::from(BLOCK_BYTES);
        Self::Range { least, steps: range.most / range.least }
    }

    /// Returns the mean, in blocks.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::One(blocks) => *blocks as f64,
            Self::Range { least, steps } => (*least as f64) * (*steps as f64 + 1.0) / 2.0,
            Self::Split(shares) => {
                let mut before = 0.0;
                let part = |(blocks, bound): &(u64, f64)| {
                    let share = bound - before;
                    before = *bound;
                    *blocks as f64 * share
                };
                let sum: f64 = shares.iter().map(part).sum();
                sum / before
            }
        }
    }

    /// Returns the smallest size. Operations begin at its multiples.
    pub(super) fn least(&self) -> u64 {
        match self {
            Self::One(blocks) | Self::Range { least: blocks, .. } => *blocks,
            Self::Split(shares) => shares.iter().map(|(blocks, _)| *blocks).min().unwrap_or(1),
        }
    }

    pub(super) fn most(&self) -> u64 {
        match self {
            Self::One(blocks) => *blocks,
            Self::Range { least, steps } => least * steps,
            Self::Split(shares) => shares.iter().map(|(blocks, _)| *blocks).max().unwrap_or(1),
        }
    }

    /// Draws the size of the next operation. A single size needs no random number.
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::One(blocks) => *blocks,
            Self::Range { least, steps } => least * (1 + rng.below(*steps)),
            Self::Split(shares) => {
                let (last, sum) = shares[shares.len() - 1];
                let at = rng.unit_f64() * sum;
                shares.iter().find(|(_, bound)| at < *bound).map_or(last, |(blocks, _)| *blocks)
            }
        }
    }
}

impl PerDirection<Sizes> {
    /// Returns the smallest size of all directions.
    pub(super) fn least(&self) -> u64 {
        self.each().map(|(_, sizes)| sizes.least()).into_iter().min().unwrap_or(1)
    }

    pub(super) fn most(&self) -> u64 {
        self.each().map(|(_, sizes)| sizes.most()).into_iter().max().unwrap_or(1)
    }

    /// Whether all operations have the same size.
    pub(super) fn is_one(&self) -> bool {
        self.least() == self.most()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_as_fio_reads_them() {
        let split = BlockSplit::parse("4k/60:64k/30:1m/10").unwrap();
        assert_eq!(split.shares, [(4096, 60.0), (65_536, 30.0), (1 << 20, 10.0)]);
        assert_eq!(split.to_string(), "4k/60:64k/30:1m/10");
        let open = BlockSplit::parse("4k/50:8k/:16k").unwrap();
        assert_eq!(open.shares, [(4096, 50.0), (8192, 25.0), (16_384, 25.0)]);
        assert!(BlockSplit::parse("4k/33.3:8k/33.3:16k/33.3").is_ok());
        for (text, words) in [
            ("", "is no size"),
            ("4k/60:64k/30", "come to 90 %, and have to come to 100"),
            ("4k/100:64k", "less than 100 for those without"),
            ("4k/-1:8k/101", "a percentage from 0 to 100"),
            ("4k/x", "a percentage from 0 to 100"),
            ("512/100", "multiples of 4096"),
            ("0/100", "multiples of 4096"),
            ("32m/100", "up to 16 MiB"),
        ] {
            let error = BlockSplit::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn ranges_are_read_as_fio_reads_them() {
        assert_eq!(BlockRange::parse("4k-64k"), Ok(BlockRange { least: 4096, most: 65_536 }));
        assert_eq!(BlockRange::parse("4k:8k").map(|range| range.to_string()), Ok("4k-8k".into()));
        for text in ["4k", "64k-4k", "8k-12k", "1k-4k", "4k-", "-4k", "4k-32m"] {
            assert!(BlockRange::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_come_as_often_as_they_are_to() {
        let mut rng = Rng::new(1);
        let split = Sizes::split(&BlockSplit::parse("4k/60:64k/40").unwrap());
        assert_eq!((split.least(), split.most()), (1, 16));
        let long = (0..100_000).filter(|_| split.draw(&mut rng) == 16).count();
        assert!(long.abs_diff(40_000) < 600, "{long}");
        let range = Sizes::range(BlockRange::parse("8k-64k").unwrap());
        let mut counts = [0_u32; 9];
        (0..80_000).for_each(|_| counts[(range.draw(&mut rng) / 2) as usize] += 1);
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
