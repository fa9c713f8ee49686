//! Survey of a whole trace, made before its replay.
//!
//! Memory: the table of key numbers ([`super::keys`]).

use std::io::BufRead;

use runtime::Nanos;

use super::{KeyNumbers, KvFormat, KvOp, KvReader, Times, TraceError};

/// Summary of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct KvSurvey {
    /// Format.
    pub format: KvFormat,
    /// Lines.
    pub lines: u64,
    /// Gets.
    pub gets: u64,
    /// Puts.
    pub puts: u64,
    /// Operations that get and may put.
    pub read_modify_writes: u64,
    /// Deletes.
    pub deletes: u64,
    /// Keys.
    pub keys: u64,
    /// Keys that existed before the trace, as far as it shows ([`super::KvRecord::value_before`]).
    pub met_first: u64,
    /// Longest key in bytes, without the prefix for column families.
    pub longest_key: u32,
    /// Mean length of keys, in bytes.
    pub mean_key: f64,
    /// Longest value that is put or got, in bytes.
    pub longest_value: u32,
    /// Mean length of values that are put, in bytes.
    pub mean_value: f64,
    /// Column families, at most 256.
    pub families: u64,
    /// The largest number of a column family.
    pub largest_family: u32,
    /// Operations that are not replayed, by type.
    pub left_out: Vec<(&'static str, u64)>,
    /// Operations with an earlier recorded time than the previous one, whose time they get.
    pub out_of_order: u64,
    /// Time from the beginning to the last operation.
    pub span: Nanos,
}

impl KvSurvey {
    /// Surveys a trace from its beginning to its end.
    ///
    /// # Errors
    /// Returns [`TraceError`] for the first invalid line, or if the trace has no operations to
    /// replay.
    pub fn of(origin: &str, format: KvFormat, input: impl BufRead) -> Result<Self, TraceError> {
        let mut reader = KvReader::new(origin, format, input);
        let mut survey = Self::nothing(format);
        let mut keys = KeyNumbers::default();
        let (mut key_bytes, mut put_bytes, mut puts) = (0_u64, 0_u64, 0_u64);
        for record in reader.by_ref() {
            let record = record?;
            *match record.op {
                KvOp::Get => &mut survey.gets,
                KvOp::Put => &mut survey.puts,
                KvOp::Delete => &mut survey.deletes,
                KvOp::Merge | KvOp::PutIfAbsent | KvOp::PutIfPresent => {
                    &mut survey.read_modify_writes
                }
            } += 1;
            if !keys.meet(&record).is_known {
                survey.met_first += u64::from(record.value_before(format, 0).is_some());
                key_bytes += u64::from(record.key_bytes);
                survey.longest_key = survey.longest_key.max(record.key_bytes);
            }
            survey.longest_value = survey.longest_value.max(record.value_bytes);
            if record.op.may_put() {
                (puts, put_bytes) = (puts + 1, put_bytes + u64::from(record.value_bytes));
            }
            survey.span = record.at;
        }
        survey.keys = keys.count();
        if survey.operations() == 0 {
            let what = "none of its lines is a get, a put or a delete".to_owned();
            return Err(TraceError::Nothing { origin: origin.to_owned(), what });
        }
        survey.mean_key = key_bytes as f64 / survey.keys as f64;
        survey.mean_value = if puts > 0 { put_bytes as f64 / puts as f64 } else { 0.0 };
        let reader = match &reader.0 {
            Times::Recorded(reader) => reader,
            Times::Spread(spread) => spread.records(),
        };
        let counts = reader.parser().counts();
        survey.lines = reader.lines();
        (survey.families, survey.largest_family) = (counts.families.count(), counts.largest_family);
        survey.left_out.clone_from(&counts.left_out);
        survey.out_of_order = counts.clock.out_of_order();
        Ok(survey)
    }

    fn nothing(format: KvFormat) -> Self {
        Self {
            format,
            lines: 0,
            gets: 0,
            puts: 0,
            read_modify_writes: 0,
            deletes: 0,
            keys: 0,
            met_first: 0,
            longest_key: 0,
            mean_key: 0.0,
            longest_value: 0,
            mean_value: 0.0,
            families: 0,
            largest_family: 0,
            left_out: Vec::new(),
            out_of_order: 0,
            span: Nanos::ZERO,
        }
    }

    /// Returns the bytes before keys that identify the column family; 0 for a single family.
    pub fn family_bytes(&self) -> usize {
        let digits = u32::BITS.div_ceil(8) - self.largest_family.leading_zeros() / 8;
        if self.families > 1 { digits as usize } else { 0 }
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        self.gets + self.puts + self.read_modify_writes + self.deletes
    }
}
