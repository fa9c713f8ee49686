//! Reconstruction of a damaged or missing `LEVELHEAD` from the other directories or from the pages.
//!
//! Each page of a store on one file has the store's id. Each extent of a member starts with a
//! header that has the volume's id and the extent's number. The length of a file is the store's
//! capacity.

use std::collections::BTreeMap;
use std::fs::File;
use std::iter;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use engine::{PageNo, store_of};
use volume::header::Header;
use volume::{Layout, header};

use crate::directory;
use crate::directory::capacity::growths;
use crate::directory::identity::Identity;
use crate::error::Error;
use crate::options::{PAGE_BYTES, most_inline};

/// Intact pages that vote on the store's id.
const WITNESSES: u32 = 256;
/// Extents of a volume start at multiples of this, in bytes.
const STEP: u64 = 1 << 20;

/// Returns the possible identities of the store in `directories`, the most likely first; none if
/// the files contain nothing of a store.
///
/// # Errors
/// Returns [`Error::Invalid`] if the directories are given in another order than at creation.
pub(crate) fn identities(directories: &[PathBuf]) -> Result<Vec<Identity>, Error> {
    let said = directories.iter().filter_map(|directory| directory::read(directory).ok().flatten());
    let members = directories.len();
    let said = said.filter(|said| usize::from(said.members) == members);
    let said: Vec<Vec<Identity>> = said.map(|said| vec![said]).collect();
    if let Some([identity, ..]) = of_most(said)?.as_deref() {
        return Ok(vec![Identity { member: 0, is_being_made: false, ..identity.clone() }]);
    }
    // Pages do not record the maximum length of inline values. Assumes the largest one, so that all
    // of them can be read.
    let read = |identity: Identity| {
        let inline_up_to = most_inline(identity.page_bytes);
        Identity { inline_up_to, ..identity }
    };
    if members == 1 {
        let found = of_file(&directory::data_file(&directories[0])).unwrap_or_default();
        return Ok(found.into_iter().map(read).collect());
    }
    let files = directories.iter().map(|directory| directory::data_file(directory));
    let found = (0..).zip(files).filter_map(|(member, file)| of_member(&file, member, members));
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    Ok(of_most(found)?.into_iter().flatten().map(read).collect())
}

/// Chooses the store that most directories agree on, because a directory of another store may be
/// among them. Of the identities of that store, takes the one with the largest capacity: a
/// truncated file makes its own smaller.
fn of_most(said: Vec<Vec<Identity>>) -> Result<Option<Vec<Identity>>, Error> {
    let mut stores: BTreeMap<u32, Vec<Vec<Identity>>> = BTreeMap::new();
    for shapes in said {
        if let Some(first) = shapes.first() {
            stores.entry(first.id).or_default().push(shapes);
        }
    }
    let most = stores.values().map(Vec::len).max();
    let mut likely = stores.into_values().filter(|said| Some(said.len()) == most);
    let (first, other) = (likely.next(), likely.next());
    if other.is_some() {
        return Err(Error::Invalid(
            "these directories are of different stores, and as many of one as of another: give those of one, with a path where \
             nothing is in place of each that is lost"
                .to_owned(),
        ));
    }
    let capacity = |shapes: &Vec<Identity>| shapes.iter().map(|it| it.capacity_bytes).max();
    Ok(first.into_iter().flatten().max_by_key(capacity))
}

/// Returns the possible identities of a store on one file.
fn of_file(path: &Path) -> Option<Vec<Identity>> {
    let file = directory::open_to_read(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let sizes = iter::successors(Some(*PAGE_BYTES.start()), |size| Some(2 * size));
    let sizes = sizes.take_while(|size| PAGE_BYTES.contains(size));
    let heard = sizes.filter_map(|size| witnesses(&file, bytes, size).map(|heard| (heard, size)));
    let ((_, id), page_bytes) = heard.max_by_key(|((votes, _), _)| *votes)?;
    let of_that_page = |identity| Identity { page_bytes, ..identity };
    Some(shapes(id, bytes).into_iter().map(of_that_page).collect())
}

/// Returns the most frequent store id among the intact pages of that size, and the number of pages
/// that have it; `None` if there are no such pages.
fn witnesses(file: &File, bytes: u64, page_bytes: u32) -> Option<(u32, u32)> {
    let mut page = vec![0; page_bytes as usize];
    let (mut votes, mut heard) = (BTreeMap::<u32, u32>::new(), 0);
    let size = u64::from(page_bytes);
    let pages = |part: Range<u64>| part.start / size..part.end.div_ceil(size).min(bytes / size);
    // Skips holes, which may make up most of the file.
    for number in files::data_in(file).ok()?.into_iter().flat_map(pages) {
        let number = u32::try_from(number).ok()?;
        let is_read = file.read_exact_at(&mut page, u64::from(number) * size);
        if let Some(id) = is_read.ok().and_then(|()| store_of(&page, PageNo(number))) {
            *votes.entry(id.0).or_default() += 1;
            heard += 1;
        }
        if heard == WITNESSES {
            break;
        }
    }
    votes.into_iter().map(|(id, votes)| (votes, id)).max()
}

/// Returns the possible extent sizes and growth limits of a file. The file does not record whether
/// and how much it has grown: a store that was created smaller has smaller extents. Its length may
/// also be slightly less than the requested capacity, so that its extents are those of a larger
/// store.
fn shapes(id: u32, bytes: u64) -> Vec<Identity> {
    let likely = Identity::new(id, 1, bytes);
    let smaller = iter::successors(Some(likely.extent_bytes), |size| Some(size / 2));
    let smaller = smaller.take_while(|size| *size >= STEP);
    let sizes = smaller.chain(Some(2 * likely.extent_bytes).filter(|longer| *longer <= 16 * STEP));
    let of_size = |extent_bytes| {
        let has_grown = extent_bytes < likely.extent_bytes;
        let likely = Identity { extent_bytes, capacity_bytes: bytes, ..likely.clone() };
        let growths = growths(1, bytes, extent_bytes).into_iter();
        let growths = growths.filter(move |most| !has_grown || *most > 0);
        growths.map(move |most| likely.clone().growing_to(most))
    };
    sizes.filter(|size| bytes.is_multiple_of(*size)).flat_map(of_size).collect()
}

/// Returns the possible identities of a store over several files, from the headers in one of them.
fn of_member(path: &Path, member: u8, members: usize) -> Option<Result<Vec<Identity>, Error>> {
    let file = directory::open_to_read(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut start = [0; header::MOST_BYTES];
    let headers = (0..bytes / STEP).filter_map(|step| {
        file.read_exact_at(&mut start, step * STEP).ok()?;
        header::decode(&start).map(|header| (step * STEP, header))
    });
    let is_ours = |header: &Header| usize::from(header.members) == members;
    let mut headers = headers.filter(|(_, header)| is_ours(header)).peekable();
    let (_, first) = *headers.peek()?;
    if first.member != member {
        let (path, says) = (path.display(), first.member + 1);
        return Some(Err(Error::Invalid(format!(
            "{path} is number {says} of the store's directories: give them in the order in which it was made"
        ))));
    }
    let id = u32::try_from(first.volume).ok()?;
    let extent = headers.find(|(_, header)| header.extent.0 > 0);
    let extent_bytes = extent.map(|(at, header)| at / u64::from(header.extent.0));
    let likely = Identity::new(id, u16::try_from(members).ok()?, bytes);
    let extent_bytes = extent_bytes.unwrap_or(likely.extent_bytes);
    let Layout::Parity { chunk_pages } = first.layout else { return None };
    let page_bytes = Identity::page_bytes_by(chunk_pages)?;
    let is_sound = extent_bytes >= STEP && bytes >= extent_bytes;
    let capacity_bytes = bytes / extent_bytes.max(1) * extent_bytes;
    let likely = Identity { page_bytes, extent_bytes, capacity_bytes, ..likely };
    let growths = is_sound.then(|| growths(members, capacity_bytes, extent_bytes))?;
    Some(Ok(growths.into_iter().map(|most| likely.clone().growing_to(most)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_among_directories_is_not_believed() {
        let says = |id, bytes: u64| vec![Identity::new(id, 3, bytes << 20)];
        let of =
            |said: &[(u32, u64)]| of_most(said.iter().map(|(id, mib)| says(*id, *mib)).collect());
        let found = |said| of(said).expect("most are of one").map(|shapes| shapes[0].id);
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(7, 64)]), Some(7));
        assert_eq!(found(&[(7, 64), (9, 256), (7, 128)]), Some(7));
        let longest = of(&[(7, 64), (9, 256), (7, 128)]).expect("most are of one").expect("some");
        assert_eq!(longest, says(7, 128), "one was cut");
        of(&[(7, 64), (9, 64)]).expect_err("as many of one as of the other");
    }

    #[test]
    fn a_shape_that_a_store_was_made_with_is_among_those_that_its_file_says() {
        for capacity in (64_u64 << 20..20 << 30).step_by((37 << 20) + 4_096) {
            let made = Identity::new(7, 1, capacity);
            let found = shapes(7, made.capacity_bytes);
            assert!(found.contains(&made), "{made:?}: {found:?}");
        }
    }
}
