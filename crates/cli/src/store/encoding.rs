//! Encodings of keys and values on the command line: text, hexadecimal or base64.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use anyhow::anyhow;
use clap::Args;
use data_encoding::{BASE64, DecodeError, HEXLOWER, HEXLOWER_PERMISSIVE};

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EncodingArguments {
    /// Keys and values are hexadecimal; input may begin with 0x
    #[arg(long, conflicts_with = "base64")]
    hex: bool,
    /// Keys and values are base64
    #[arg(long)]
    base64: bool,
}

impl EncodingArguments {
    pub(crate) fn encoding(self) -> Encoding {
        match (self.hex, self.base64) {
            (true, _) => Encoding::Hex,
            (_, true) => Encoding::Base64,
            _ => Encoding::Text,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// Bytes as they are.
    Text,
    Hex,
    Base64,
}

impl Encoding {
    /// Decodes bytes from the command line.
    pub(crate) fn decode(self, typed: &[u8]) -> Result<Vec<u8>, String> {
        let wrong = |name: &str, error: DecodeError| {
            Err(format!("`{}` is no {name}: {error}", String::from_utf8_lossy(typed)))
        };
        match self {
            Self::Text => Ok(typed.to_vec()),
            Self::Hex => {
                let digits = typed.strip_prefix(b"0x").unwrap_or(typed);
                HEXLOWER_PERMISSIVE.decode(digits).or_else(|error| wrong("hexadecimal", error))
            }
            Self::Base64 => BASE64.decode(typed).or_else(|error| wrong("base64", error)),
        }
    }

    /// Decodes an argument of the command line.
    pub(crate) fn typed(self, typed: &OsStr) -> anyhow::Result<Vec<u8>> {
        self.decode(typed.as_bytes()).map_err(|error| anyhow!(error))
    }

    /// Encodes bytes for output.
    pub(crate) fn encode(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Text => bytes.into(),
            Self::Hex => HEXLOWER.encode(bytes).into_bytes().into(),
            Self::Base64 => BASE64.encode(bytes).into_bytes().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{Base64, Hex, Text};

    #[test]
    fn what_is_typed_is_decoded_and_what_is_wrong_is_named() {
        for (encoding, typed, bytes) in [
            (Text, "0x61", &b"0x61"[..]),
            (Hex, "0x61FF", b"a\xff"),
            (Hex, "61ff", b"a\xff"),
            (Hex, "", b""),
            (Base64, "Yf8=", b"a\xff"),
        ] {
            assert_eq!(encoding.decode(typed.as_bytes()).as_deref(), Ok(bytes), "{typed}");
        }
        for (encoding, typed, says) in [
            (Hex, "6", "`6` is no hexadecimal: invalid length"),
            (Hex, "zz", "`zz` is no hexadecimal: invalid symbol"),
            (Base64, "Yf8", "`Yf8` is no base64: invalid length"),
        ] {
            let error = encoding.decode(typed.as_bytes()).expect_err(typed);
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        let all: Vec<u8> = (0..=255).collect();
        for encoding in [Text, Hex, Base64] {
            assert_eq!(encoding.decode(&encoding.encode(&all)).as_deref(), Ok(&all[..]));
        }
    }
}
