//! Policies: a list of fields by name, each with its action. Everything not named is removed.
//!
//! ```toml
//! about = "Who talks to whom is hidden, prefixes are kept"
//!
//! [fields]
//! "ipv4.source" = "prefix"
//! "ipv4.destination" = "prefix"
//! "tcp.*" = "keep"
//! "tcp.timestamps.value" = { shift = 12345 }
//! ```
//!
//! `NAME.*` stands for all fields whose names begin with `NAME.` and that have no line of their own;
//! `NAME+2:8` for the eight bits that begin two bytes behind the first one of a field.

use crate::{
    application::{PARTS, Part, Treatment},
    layer::{FIELDS, Field, KINDS, Kind, field},
    program::{Instruction, Operation, Program, Refusal, is_there},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The policies that come with the mask: their names and texts.
pub const SHIPPED: [(&str, &str); 4] = [
    ("strict", include_str!("../policies/strict.toml")),
    ("research", include_str!("../policies/research.toml")),
    ("flows", include_str!("../policies/flows.toml")),
    ("debug", include_str!("../policies/debug.toml")),
];

/// A policy as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// What it is for, in a sentence or two.
    pub about: String,
    /// Whether payload is kept: off by default.
    #[serde(default)]
    pub payload: bool,
    /// What to do with the times at which packets were captured.
    #[serde(default)]
    pub time: Time,
    /// Fields by name, and the action of each.
    #[serde(default)]
    pub fields: BTreeMap<String, Action>,
}

/// What to do with the times of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// All are zero.
    #[default]
    Remove,
    /// They stay.
    Keep,
    /// They count from the first packet.
    Relative,
}

/// The action of a field, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is removed: for fields that a wider line would keep.
    Remove,
    /// [`Operation::Keep`].
    Keep,
    /// [`Operation::Random`].
    Random,
    /// [`Operation::Hash`].
    Hash,
    /// [`Operation::Encrypt`].
    Encrypt,
    /// [`Operation::Prefix`].
    Prefix,
    /// [`Operation::Constant`].
    Constant(u32),
    /// [`Operation::Xor`].
    Xor(u32),
    /// [`Operation::Shift`].
    Shift(u32),
    /// [`Operation::Truncate`]: so many bits are kept.
    Truncate(u8),
    /// [`Operation::Permute`]: so many bits are kept.
    Permute(u8),
}

impl Action {
    fn operation(self) -> Option<Operation> {
        Some(match self {
            Self::Remove => return None,
            Self::Keep => Operation::Keep,
            Self::Random => Operation::Random,
            Self::Hash => Operation::Hash,
            Self::Encrypt => Operation::Encrypt,
            Self::Prefix => Operation::Prefix,
            Self::Constant(value) => Operation::Constant(value),
            Self::Xor(value) => Operation::Xor(value),
            Self::Shift(value) => Operation::Shift(value),
            Self::Truncate(bits) => Operation::Truncate(bits),
            Self::Permute(bits) => Operation::Permute(bits),
        })
    }
}

/// Why a policy is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no policy's TOML.
    #[error("{0}")]
    Text(String),
    /// A line names nothing.
    #[error("there is no field {name:?}{}", near(.name))]
    Unknown {
        /// What it says.
        name: String,
    },
    /// A line is of structure, which is always kept.
    #[error(
        "{0} is structure, without which nothing of the packet could be read: it is always kept"
    )]
    Structure(String),
    /// A line names bits at an offset, but not as it should.
    #[error("{0:?}: bits at an offset are named FIELD+BYTES:8 or FIELD+BYTES:16")]
    Slice(String),
    /// What it compiles to is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The header, the first byte and the bytes of a line that names 8 or 16 bits at an offset from a field.
fn slice(name: &str) -> Result<Option<(Kind, u8, u8)>, PolicyError> {
    let Some((from, rest)) = name.split_once('+') else { return Ok(None) };
    let unknown = || PolicyError::Unknown { name: from.to_owned() };
    let field = field(from).ok_or_else(unknown)?;
    let wrong = || PolicyError::Slice(name.to_owned());
    let (offset, bits) = rest.split_once(':').ok_or_else(wrong)?;
    let at = offset.parse::<u8>().ok().and_then(|offset| field.at.checked_add(offset));
    let bytes = match bits {
        "8" => 1,
        "16" => 2,
        _ => return Err(wrong()),
    };
    Ok(Some((field.kind, at.ok_or_else(wrong)?, bytes)))
}

/// The best of the known names, as a question.
fn near(name: &str) -> String {
    let fields = FIELDS.iter().filter(|field| !field.is_structure).map(|field| field.name);
    let known = fields.chain(PARTS.iter().map(|part| part.name));
    let nearest = config::alike(name, known);
    nearest.first().map(|name| format!(": did you mean {name:?}?")).unwrap_or_default()
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// When it is no TOML, or says what policies do not say.
    pub fn read(text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| {
            // Not the line itself: it may be that of a key's file that was given by mistake.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line =
                before.lines().count() + usize::from(before.ends_with('\n') || before.is_empty());
            PolicyError::Text(format!("line {line}: {}", error.message()))
        })
    }

    /// A policy that comes with the mask.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        Self::read(text).ok()
    }

    /// The action of a field.
    pub fn of(&self, field: &Field) -> Action {
        self.of_name(field.name)
    }

    /// The same of anything that has a name.
    pub(crate) fn of_name(&self, name: &'static str) -> Action {
        if let Some(action) = self.fields.get(name) {
            return *action;
        }
        // The longest line that stands for it.
        let mut name = name;
        while let Some((group, _)) = name.rsplit_once('.') {
            if let Some(action) = self.fields.get(&format!("{group}.*")) {
                return *action;
            }
            name = group;
        }
        Action::Remove
    }

    /// The action of each field: a line for each that is not removed, then the removed ones.
    pub fn summary(&self) -> String {
        let mut text = format!("{}\n\n", self.about);
        let mut removed = Vec::new();
        for field in FIELDS.iter().filter(|field| !field.is_structure) {
            match self.of(field) {
                Action::Remove => removed.push(field.name),
                action => text += &format!("  {:40} {action:?}\n", field.name),
            }
        }
        for (name, action) in self.fields.iter().filter(|(name, _)| name.contains('+')) {
            text += &format!("  {name:40} {action:?}\n");
        }
        for part in PARTS {
            match self.of_name(part.name) {
                Action::Remove => removed.push(part.name),
                action => text += &format!("  {:40} {action:?}\n", part.name),
            }
        }
        let payload = if self.payload { "Keep" } else { "Remove" };
        text += &format!("  {:40} {payload}\n  {:40} {:?}\n", "payload", "time", self.time);
        text + &format!("\nRemoved: {}\n", removed.join(", "))
    }

    /// What it does with each field and each part of an application, by name.
    pub fn actions(&self) -> BTreeMap<&str, Action> {
        let fields = FIELDS.iter().filter(|field| !field.is_structure);
        let fields = fields.map(|field| (field.name, self.of(field)));
        let slices = self.fields.iter().filter(|(name, _)| name.contains('+'));
        let slices = slices.map(|(name, action)| (&**name, *action));
        let parts = PARTS.iter().map(|part| (part.name, self.of_name(part.name)));
        fields.chain(slices).chain(parts).collect()
    }

    /// Compiles it to a program, which is verified.
    ///
    /// # Errors
    /// When a line names no field, or wants what a field's width does not allow.
    pub fn compile(&self) -> Result<Program, PolicyError> {
        let mut slices = Vec::new();
        for (name, action) in &self.fields {
            if let Some((kind, at, bytes)) = slice(name)? {
                if let Some(operation) = action.operation() {
                    slices.push((kind, Instruction::slice(kind, at, bytes, operation)));
                }
                continue;
            }
            let group = name.strip_suffix('*').filter(|group| group.ends_with('.'));
            let named: Vec<&Field> = FIELDS
                .iter()
                .filter(|it| group.map_or(it.name == name, |group| it.name.starts_with(group)))
                .collect();
            let is_part =
                |part: &Part| group.map_or(part.name == name, |it| part.name.starts_with(it));
            if named.is_empty() && !PARTS.iter().any(is_part) {
                return Err(PolicyError::Unknown { name: name.clone() });
            }
            if group.is_none() && named.iter().any(|field| field.is_structure) {
                return Err(PolicyError::Structure(name.clone()));
            }
        }
        let mut lists: [Vec<Instruction>; KINDS] = std::array::from_fn(|_| Vec::new());
        for field in FIELDS.iter().filter(|field| !field.is_structure) {
            if let Some(operation) = self.of(field).operation() {
                lists[field.kind as usize].push(Instruction::new(field, operation));
            }
        }
        for (kind, instruction) in &slices {
            lists[*kind as usize].push(*instruction);
        }
        for field in FIELDS.iter().filter(|field| field.is_structure) {
            let kind = field.kind;
            if is_there(&lists, kind) {
                lists[kind as usize].push(Instruction::new(field, Operation::Keep));
            }
        }
        for list in &mut lists {
            list.sort_by_key(|it| (it.at, std::cmp::Reverse(it.mask)));
        }
        let mut parts = [None; PARTS.len()];
        for (part, treatment) in PARTS.iter().zip(&mut parts) {
            *treatment = match self.of_name(part.name) {
                Action::Remove => None,
                Action::Keep => Some(Treatment::Keep),
                Action::Hash => Some(Treatment::Hash),
                Action::Encrypt => Some(Treatment::Encrypt),
                Action::Prefix => Some(Treatment::Prefix),
                _ => return Err(Refusal::Part(part.name).into()),
            };
        }
        let is_removed = |field: &Field, bit| {
            let mut sliced = slices.iter().filter(|(kind, _)| *kind == field.kind);
            self.of(field) == Action::Remove
                && !sliced.any(|(_, slice)| slice.covers().any(|it| it == bit))
        };
        Ok(Program::verify(lists, self.payload, parts, is_removed)?)
    }
}
