//! YAML as a tree whose parts have their positions.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Location, SnippetMode, Spanned};

use super::{ConfigError, FilePosition};

/// The number of characters of a text that an error shows.
const LONGEST: usize = 60;

/// A key of a mapping.
pub struct Entry {
    pub text: String,
    location: Location,
}

/// A value with its position.
pub struct YamlValue {
    node: YamlNode,
    location: Location,
}

enum YamlNode {
    Null,
    Flag(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(Vec<YamlValue>),
    Map(Vec<(Entry, YamlValue)>),
}

/// Reads a text; `file` names it in errors.
pub fn parse(text: &str, file: &str) -> Result<YamlValue, ConfigError> {
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
    // The message starts with the position already.
    let reason = text.split(" at line ").next().unwrap_or(&text).lines().next().unwrap_or_default();
    ConfigError::Syntax { place, reason: reason.to_string() }
}

fn place(location: Location, file: &str) -> FilePosition {
    FilePosition { file: file.into(), line: location.line(), column: location.column() }
}

impl Entry {
    /// Returns the position, in a file of this name.
    pub fn place(&self, file: &str) -> FilePosition {
        place(self.location, file)
    }
}

impl YamlValue {
    /// Returns the position, in a file of this name.
    pub fn place(&self, file: &str) -> FilePosition {
        place(self.location, file)
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self.node, YamlNode::Null)
    }

    /// Returns whether it is a number, a text or a flag.
    pub fn is_scalar(&self) -> bool {
        self.flag().is_some() || self.whole().is_some() || self.text().is_some()
    }

    /// Returns the value of a boolean.
    pub fn flag(&self) -> Option<bool> {
        if let YamlNode::Flag(flag) = self.node { Some(flag) } else { None }
    }

    /// Returns the value of an integer.
    pub fn whole(&self) -> Option<i128> {
        if let YamlNode::Whole(number) = self.node { Some(number) } else { None }
    }

    /// Returns the text of a string.
    pub fn text(&self) -> Option<&str> {
        if let YamlNode::Text(text) = &self.node { Some(text) } else { None }
    }

    /// Returns the items of a list.
    pub fn list(&self) -> Option<&[YamlValue]> {
        if let YamlNode::List(list) = &self.node { Some(list) } else { None }
    }

    /// Returns the entries of a mapping, in order.
    pub fn map(&self) -> Option<&[(Entry, YamlValue)]> {
        if let YamlNode::Map(entries) = &self.node { Some(entries) } else { None }
    }
}

/// Returns the first line of a text in quotation marks, shortened if it is long.
pub fn quoted(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("'{}...'", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("'{line}...'"),
        None => format!("'{line}'"),
    }
}

/// Formats a value for error messages.
impl fmt::Display for YamlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            YamlNode::Null => f.write_str("null"),
            YamlNode::Flag(flag) => write!(f, "{flag}"),
            YamlNode::Whole(number) => write!(f, "{number}"),
            YamlNode::Fraction(number) => write!(f, "{number}"),
            YamlNode::Text(text) => f.write_str(&quoted(text)),
            YamlNode::List(list) if list.is_empty() => f.write_str("an empty list"),
            YamlNode::List(_) => f.write_str("a list"),
            YamlNode::Map(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlValue, D::Error> {
        let spanned = Spanned::<YamlNode>::deserialize(deserializer)?;
        Ok(YamlValue { node: spanned.value, location: spanned.referenced })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Entry { text: spanned.value, location: spanned.referenced })
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(YamlNodeVisitor)
    }
}

struct YamlNodeVisitor;

impl<'de> Visitor<'de> for YamlNodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Null)
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<YamlNode, E> {
        Ok(YamlNode::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Text(text.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = items.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlNode::Map(entries))
    }
}
