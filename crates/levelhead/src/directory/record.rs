//! The text of `LEVELHEAD`, in which a directory or a drive records its identity.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use serde::Deserialize;

use super::files::{clear, identity_file};
use super::identity::{FORMATS, Identity};
use crate::drive;
use crate::error::Error;
use crate::options::PAGE_BYTES;

/// The start of the text.
const MARK: &str = "# A Levelhead store.";
/// The maximum length of the text in bytes: enough for 64 of the longest paths.
const MOST_TEXT: u64 = 1 << 20;
/// The start of the last line.
const CHECKSUM: &str = "# checksum ";

/// Returns the contents of a `LEVELHEAD`; `None` if it does not exist.
fn read_text(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let found = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| Error::of_path(path, "read", &error))?,
    };
    let damaged =
        |what: &str| Error::Damaged { path: path.to_owned(), offset: None, what: what.to_owned() };
    if !found.is_file() {
        return Err(damaged("it is no file"));
    }
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_TEXT).read_to_end(&mut text));
    read.map_err(|error| Error::of_path(path, "read", &error))?;
    Ok(Some(text))
}

/// The part of the text that is the same in all versions.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// Reads the identity in a directory; `None` if it has none.
pub(crate) fn read(directory: &Path) -> Result<Option<Identity>, Error> {
    let path = identity_file(directory);
    let text = if drive::is_drive(directory) {
        let Some(text) = drive::read(directory, MARK)? else { return Ok(None) };
        text
    } else {
        let Some(text) = read_text(&path)? else { return Ok(None) };
        text
    };
    let damaged = |what: String| Error::Damaged { path: path.clone(), offset: None, what };
    let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
    let Some(at) = text.rfind(CHECKSUM) else {
        return Err(damaged("it ends before its checksum, or is no store's".to_owned()));
    };
    let (body, checksum) = text.split_at(at);
    if checksum != checksum_of(body) {
        return Err(damaged("it is not what was written: its checksum is another one".to_owned()));
    }
    let Form { format } = toml::from_str(body).map_err(|error| damaged(error.to_string()))?;
    if !FORMATS.contains(&format) {
        let (least, most) = FORMATS.into_inner();
        return Err(Error::Invalid(format!(
            "{}: the store has format {format}, this program reads formats {least} to {most}: use the one that made it",
            path.display()
        )));
    }
    let identity: Identity = toml::from_str(body).map_err(|error| damaged(error.to_string()))?;
    let is_sound = identity.extent_bytes >= u64::from(identity.page_bytes)
        && PAGE_BYTES.contains(&identity.page_bytes)
        && identity.page_bytes.is_power_of_two()
        && identity.extent_bytes.is_multiple_of(u64::from(identity.page_bytes))
        && identity.capacity_bytes.is_multiple_of(identity.extent_bytes)
        && identity.grows_to_bytes.is_multiple_of(identity.extent_bytes)
        && identity.member < identity.members;
    if !is_sound {
        return Err(damaged("its numbers contradict each other".to_owned()));
    }
    Ok(Some(identity))
}

/// Writes the identity of a member, durably.
pub(super) fn write(directory: &Path, identity: &Identity) -> Result<(), Error> {
    let (path, part) = (identity_file(directory), directory.join(".LEVELHEAD.part"));
    let is_drive = drive::is_drive(directory);
    let directories = if is_drive { Vec::new() } else { identity.directories.clone() };
    let identity = Identity { directories, ..identity.clone() };
    let text = toml::to_string(&identity).expect("numbers and text can be written");
    let body = format!("{MARK} Do not edit.\n{text}");
    if is_drive {
        let written = drive::write(directory, &format!("{body}{}", checksum_of(&body)));
        return written.map_err(|error| Error::of_path(&path, "written", &error));
    }
    clear(&part).map_err(|error| Error::of_path(&part, "removed", &error))?;
    let written = fs::File::create_new(&part).and_then(|mut file| {
        file.write_all(body.as_bytes())?;
        file.write_all(checksum_of(&body).as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        fs::File::open(directory)?.sync_all()
    });
    written.map_err(|error| Error::of_path(&path, "written", &error))
}

/// Returns the last line: the checksum of everything before it.
fn checksum_of(body: &str) -> String {
    format!("{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drive_says_of_itself_fits_a_sector() {
        let identity =
            Identity { member: 63, is_being_made: true, ..Identity::new(u32::MAX, 64, 1 << 62) };
        let identity = identity.growing_to(0);
        let text = toml::to_string(&identity).expect("numbers can be written");
        let body = format!("{MARK} Do not edit.\n{text}");
        assert!(body.len() + checksum_of(&body).len() <= 512, "{body}");
    }
}
