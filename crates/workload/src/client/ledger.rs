//! State that outlives a phase: the writes made.

use crate::generator::InsertCounter;
use crate::oracle::Oracle;

/// See the module's documentation.
pub(crate) struct Ledger {
    pub(crate) oracle: Oracle,
    pub(crate) inserts: InsertCounter,
}
