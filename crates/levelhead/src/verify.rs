//! Verification of a store: reads and checks all of it (`walk.rs`), and for a store over several
//! directories also the parity of pages in use (`parity.rs`).

use crate::error::Error;
use crate::report::Report;
use crate::store::Store;

/// The progress of [`Store::verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// The number of pairs read so far.
    Pairs(u64),
    /// All pairs were read, and the stripes of some extents of the files were compared.
    Stripes {
        /// Extents compared so far.
        parts: u64,
        /// All extents.
        all: u64,
    },
}

impl Store {
    /// Reads and checks every pair of the store as it is now. The store can be used meanwhile.
    /// `progress` is called every thousand pairs and, for several directories, after each extent
    /// whose stripes were compared.
    ///
    /// For a store over three or more directories it also reads every stripe in use from all of
    /// them, and reports the file in which parity does not agree with the data. It changes nothing.
    /// Pages of the log and the manifest are not compared.
    ///
    /// Damage is returned in the report; for an unreadable part of the index the report has its key
    /// range.
    ///
    /// # Errors
    /// Returns errors other than damage, such as [`Error::TooOld`] if the store could not keep the
    /// instant.
    pub fn verify(&self, mut progress: impl FnMut(Verified)) -> Result<Report, Error> {
        let of_pairs = &mut |pairs| progress(Verified::Pairs(pairs));
        let mut report = self.walk(of_pairs, &mut |_, _| Ok(()))?;
        let of_stripes = &mut |parts, all| progress(Verified::Stripes { parts, all });
        self.check_redundancy(&mut report, of_stripes);
        Ok(report)
    }
}
