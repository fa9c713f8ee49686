//! The keys that a kind of file may have, derived from the type that it is parsed into.
//!
//! A type that derives `Deserialize` passes the names of its fields to the deserializer. A
//! deserializer that follows a path of keys and returns no value collects them section by section,
//! so that the list of keys cannot differ from the keys that are parsed.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};

/// A key of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The dotted path, with all sections: `timing.read_us`. Elements of arrays of tables have no
    /// number: `stream.depth`.
    pub path: String,
    /// The type of its value.
    pub holds: Holds,
}

/// The type of a key's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holds {
    /// `true` or `false`.
    Truth,
    /// An integer.
    Whole,
    /// A number.
    Number,
    /// A string.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of values.
    List(Box<Self>),
    /// A value with a parser of its own.
    Other,
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth => f.write_str("true or false"),
            Self::Whole => f.write_str("whole number"),
            Self::Number => f.write_str("number"),
            Self::Text => f.write_str("text"),
            Self::Word(words) => f.write_str(&words.join(", ")),
            Self::List(of) => write!(f, "list, each: {of}"),
            Self::Other => f.write_str("number or text"),
        }
    }
}

/// Returns all keys of a file that is parsed into `T`, grouped by section. Costs one traversal per
/// key.
pub fn keys<T: DeserializeOwned>() -> Vec<Key> {
    let mut keys = Vec::new();
    walk::<T>(&mut Vec::new(), &mut keys);
    keys
}

fn walk<T: DeserializeOwned>(path: &mut Vec<&'static str>, keys: &mut Vec<Key>) {
    match look::<T>(path) {
        Found::Section(fields) => {
            for field in fields {
                path.push(field);
                walk::<T>(path, keys);
                path.pop();
            }
        }
        Found::Value(holds) => keys.push(Key { path: path.join("."), holds }),
    }
}

/// The item at the end of a path.
enum Found {
    Section(&'static [&'static str]),
    Value(Holds),
}

fn look<T: DeserializeOwned>(path: &[&'static str]) -> Found {
    let found = RefCell::new(Found::Value(Holds::Other));
    // The result is always an error, because nothing is parsed.
    let _ = T::deserialize(Walker { path, found: &found, lists: 0 });
    found.into_inner()
}

/// Follows a path, and records the type that is requested at its end.
#[derive(Clone, Copy)]
struct Walker<'a> {
    path: &'a [&'static str],
    found: &'a RefCell<Found>,
    /// Number of enclosing lists since the last section.
    lists: usize,
}

impl Walker<'_> {
    fn end<T>(self, holds: Holds) -> Result<T, End> {
        let holds = (0..self.lists).fold(holds, |holds, _| Holds::List(Box::new(holds)));
        *self.found.borrow_mut() = Found::Value(holds);
        Err(End)
    }
}

/// The error that ends a traversal.
#[derive(Debug)]
struct End;

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the walk is over")
    }
}

impl std::error::Error for End {}

impl de::Error for End {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

macro_rules! values {
    ($($holds:ident: $($method:ident)*;)*) => {
        $($(
            fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, End> {
                self.end(Holds::$holds)
            }
        )*)*
    };
}

impl<'de> Deserializer<'de> for Walker<'_> {
    type Error = End;

    values! {
        Truth: deserialize_bool;
        Whole: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
            deserialize_u16 deserialize_u32 deserialize_u64;
        Number: deserialize_f32 deserialize_f64;
        Text: deserialize_char deserialize_str deserialize_string;
        Other: deserialize_any deserialize_bytes deserialize_byte_buf deserialize_unit
            deserialize_map deserialize_identifier deserialize_ignored_any;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, End> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, End> {
        self.end(Holds::Other)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, End> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, End> {
        visitor.visit_seq(Self { lists: self.lists + 1, ..self })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, End> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, End> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, End> {
        if self.path.is_empty() {
            *self.found.borrow_mut() = Found::Section(fields);
            return Err(End);
        }
        visitor.visit_map(Self { lists: 0, ..self })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, End> {
        self.end(Holds::Word(variants))
    }
}

/// A section with only the next key of the path.
impl<'de> MapAccess<'de> for Walker<'_> {
    type Error = End;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, End> {
        let Some(key) = self.path.first() else { return Ok(None) };
        let key: StrDeserializer<'_, End> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, End> {
        seed.deserialize(Self { path: &self.path[1..], ..*self })
    }
}

/// A list of one element.
impl<'de> SeqAccess<'de> for Walker<'_> {
    type Error = End;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, End> {
        seed.deserialize(*self).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "its fields are asked for")]
    struct File {
        name: String,
        timing: Timing,
        #[serde(default, rename = "stream")]
        streams: Vec<Stream>,
        maybe: Option<Timing>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "as above")]
    struct Timing {
        read_us: [f64; 2],
        cores: u32,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "as above")]
    struct Stream {
        #[serde(alias = "iodepth")]
        depth: Option<u32>,
        rw: Rw,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Rw {
        Read,
        RandRead,
    }

    #[test]
    fn every_key_is_told_with_what_it_holds() {
        let keys = keys::<File>();
        let told: Vec<String> =
            keys.iter().map(|key| format!("{}: {}", key.path, key.holds)).collect();
        let times = ["read_us: list, each: number", "cores: whole number"];
        for section in ["timing", "maybe"] {
            assert!(
                times.iter().all(|time| told.contains(&format!("{section}.{time}"))),
                "{told:?}"
            );
        }
        for key in ["name: text", "stream.depth: whole number", "stream.iodepth: whole number"] {
            assert!(told.iter().any(|told| told == key), "{key} of {told:?}");
        }
        assert!(told.contains(&"stream.rw: read, randread".to_owned()), "{told:?}");
        assert_eq!(told.len(), 8, "{told:?}");
    }
}
