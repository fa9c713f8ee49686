//! The division of a flush into objects that are written together. A slot identifies its object by
//! page, piece and signature, so no two objects with the same signature may begin in the same
//! piece. Packing can violate this only for objects of less than 512 bytes. Of their pairs one in
//! 255 has the same signature. One of the two objects then goes to another page, with other such
//! objects. Pure.

use std::collections::BTreeSet;

use crate::format::data_page::Outgoing;
use crate::space::writing::{Layout, lay_out};

/// Objects that are laid out together, by their index.
pub(crate) struct Batch {
    pub members: Vec<usize>,
    pub layout: Layout,
}

/// Lays `objects` out in one batch if signatures allow it, otherwise in a few.
pub(crate) fn lay_out_apart(
    objects: &[Outgoing<'_>],
    signature_of: impl Fn(&[u8]) -> u8,
    payload_bytes: u32,
) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut waiting: Vec<usize> = (0..objects.len()).collect();
    while !waiting.is_empty() {
        let (mut members, mut others) = (std::mem::take(&mut waiting), Vec::new());
        loop {
            let together: Vec<Outgoing<'_>> = members.iter().map(|i| objects[*i]).collect();
            let layout = lay_out(&together, payload_bytes);
            let clashes = clashes(&together, &layout, &signature_of);
            if clashes.is_empty() {
                batches.push(Batch { members, layout });
                break;
            }
            others.extend(clashes.iter().map(|place| members[*place]));
            let mut place = 0;
            members.retain(|_| {
                place += 1;
                !clashes.contains(&(place - 1))
            });
        }
        waiting = others;
    }
    batches
}

/// Returns the indexes of objects that begin in the same piece as an earlier object with the same
/// signature.
fn clashes(
    objects: &[Outgoing<'_>],
    layout: &Layout,
    signature_of: impl Fn(&[u8]) -> u8,
) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let name = |i: usize| (layout.place(i), signature_of(objects[i].key));
    (0..objects.len()).filter(|i| !seen.insert(name(*i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::value::Value;

    #[test]
    fn every_object_is_in_one_batch_and_no_name_is_given_twice() {
        let keys: Vec<Vec<u8>> = (0..300_u32).map(|i| i.to_le_bytes().to_vec()).collect();
        let value = Value::Synthetic { seed: 1, len: 40 };
        let objects: Vec<Outgoing<'_>> =
            keys.iter().map(|key| Outgoing { key, sequence: 1, value: &value }).collect();
        for signatures in [1, 3, 255] {
            let signature = |key: &[u8]| (u32::from(key[0]) * 7 % signatures) as u8;
            let batches = lay_out_apart(&objects, signature, 1056);
            let mut members: Vec<usize> = Vec::new();
            for batch in &batches {
                let together: Vec<Outgoing<'_>> =
                    batch.members.iter().map(|i| objects[*i]).collect();
                assert!(clashes(&together, &batch.layout, signature).is_empty());
                members.extend(&batch.members);
            }
            members.sort_unstable();
            assert_eq!(members, (0..300).collect::<Vec<_>>());
            assert!(signatures < 255 || batches.len() <= 3, "{} batches", batches.len());
        }
    }
}
