//! YAML as a tree whose parts have their positions.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Location, SnippetMode, Spanned};

use super::{ConfigError, Place};

/// A key of a mapping.
pub struct Entry {
    pub text: String,
    location: Location,
}

/// A value with its position.
pub struct Value {
    node: Node,
    location: Location,
}

enum Node {
    Null,
    Flag(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(Entry, Value)>),
}

/// Reads a text; `file` names it in errors.
pub fn parse(text: &str, file: &str) -> Result<Value, ConfigError> {
    serde_saphyr::from_str(text).map_err(|error| explain(&error, file))
}

fn explain(error: &Error, file: &str) -> ConfigError {
    let error = error.without_snippet();
    let place = place(error.location().unwrap_or(Location::UNKNOWN), file);
    if let Error::DuplicateMappingKey { key, .. } = error {
        return ConfigError::DuplicateKey { place, key: key.clone().unwrap_or_default() };
    }
    let known = match error {
        Error::MultipleDocuments { .. } => Some("another document begins here, expected one"),
        Error::NullIntoString { .. } => Some("a key is null, expected a name"),
        _ => None,
    };
    if let Some(reason) = known {
        return ConfigError::Syntax { place, reason: reason.into() };
    }
    let options = serde_saphyr::render_options! { snippets: SnippetMode::Off };
    let text = error.render_with_options(options);
    // The place stands in front already.
    let reason = text.split(" at line ").next().unwrap_or(&text).lines().next().unwrap_or_default();
    ConfigError::Syntax { place, reason: reason.to_string() }
}

fn place(location: Location, file: &str) -> Place {
    Place { file: file.into(), line: location.line(), column: location.column() }
}

impl Entry {
    pub fn place(&self, file: &str) -> Place {
        place(self.location, file)
    }
}

impl Value {
    pub fn place(&self, file: &str) -> Place {
        place(self.location, file)
    }

    pub fn is_null(&self) -> bool {
        matches!(self.node, Node::Null)
    }

    /// Returns whether it is a number, a text or a flag.
    pub fn is_scalar(&self) -> bool {
        self.flag().is_some() || self.whole().is_some() || self.text().is_some()
    }

    pub fn flag(&self) -> Option<bool> {
        if let Node::Flag(flag) = self.node { Some(flag) } else { None }
    }

    pub fn whole(&self) -> Option<i128> {
        if let Node::Whole(number) = self.node { Some(number) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Node::Text(text) = &self.node { Some(text) } else { None }
    }

    pub fn list(&self) -> Option<&[Value]> {
        if let Node::List(list) = &self.node { Some(list) } else { None }
    }

    pub fn map(&self) -> Option<&[(Entry, Value)]> {
        if let Node::Map(entries) = &self.node { Some(entries) } else { None }
    }
}

/// Returns its name in messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Null => f.write_str("null"),
            Node::Flag(flag) => write!(f, "{flag}"),
            Node::Whole(number) => write!(f, "{number}"),
            Node::Fraction(number) => write!(f, "{number}"),
            Node::Text(text) => write!(f, "'{text}'"),
            Node::List(list) if list.is_empty() => f.write_str("an empty list"),
            Node::List(_) => f.write_str("a list"),
            Node::Map(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Value { node: spanned.value, location: spanned.referenced })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Entry { text: spanned.value, location: spanned.referenced })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Node, E> {
        Ok(Node::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = items.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}
