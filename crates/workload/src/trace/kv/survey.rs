//! What is in a trace as a whole, found out before it is replayed.
//!
//! Memory: what tells keys apart ([`super::keys`]).

use std::io::BufRead;

use runtime::Nanos;

use super::{KeyNumbers, KvFormat, KvOp, KvReader, Times, TraceError};

/// What is in a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct KvSurvey {
    /// Its format.
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
    /// Of them, those that were there before the trace, as far as it tells ([`super::KvRecord::value_before`]).
    pub met_first: u64,
    /// Most bytes of a key, without what tells column families apart.
    pub longest_key: u32,
    /// The mean.
    pub mean_key: f64,
    /// Most bytes of a value that is put or got.
    pub longest_value: u32,
    /// The mean of those that are put.
    pub mean_value: f64,
    /// Column families, 256 at most.
    pub families: u64,
    /// The largest number of one.
    pub largest_family: u32,
    /// Operations that nothing is done for, by what they are.
    pub left_out: Vec<(&'static str, u64)>,
    /// Operations that were recorded at an earlier time than the one before them; they count as together with it.
    pub out_of_order: u64,
    /// From the beginning to the last operation.
    pub span: Nanos,
}

impl KvSurvey {
    /// Reads a trace from its beginning to its end.
    ///
    /// # Errors
    /// [`TraceError`]: of the first line that is not as it should be, or that there is nothing to replay.
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

    /// Bytes in front of keys that tell column families apart: none where there is one.
    pub fn family_bytes(&self) -> usize {
        let digits = u32::BITS.div_ceil(8) - self.largest_family.leading_zeros() / 8;
        if self.families > 1 { digits as usize } else { 0 }
    }

    /// All operations.
    pub fn operations(&self) -> u64 {
        self.gets + self.puts + self.read_modify_writes + self.deletes
    }
}
