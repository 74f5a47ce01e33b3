//! Reading all flows out of the kernel's tables, many with a call.
//!
//! The kernel reads whole buckets of a hash table. A part ends without an error, and with fewer flows than
//! there is room for, when the next bucket does not fit into what is left; only ENOENT says that the table
//! is at its end (kernel/bpf/hashtab.c, `__htab_map_lookup_and_delete_batch`). ENOSPC says that the first
//! bucket alone is too large.

use super::flow::{Flow, KEY, Key};
use super::skeleton::types;
use super::table::{Table, TableError};
use libbpf_rs::libbpf_sys;
use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
};

/// Flows that are read at once.
const PART: usize = 1024;
/// No bucket has so many.
const LARGEST: usize = 1 << 24;

/// The bytes of a flow, aligned as the kernel's are.
type Value = types::gate_flow;

/// The tables, in the order in which they are read.
#[derive(Clone, Copy, Debug)]
enum Where {
    Decided,
    Fresh,
}

/// A walk over all flows, which goes on where it was and begins again at its end.
pub struct Walk {
    table: Table,
    at: Where,
    /// The bucket to go on with; none at a table's begin.
    bucket: Option<u32>,
    keys: Vec<[u8; KEY]>,
    values: Vec<Value>,
}

impl Table {
    /// Shows all flows, decided ones first. Flows that come and go meanwhile may be among them or not.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn for_each(&self, mut each: impl FnMut(&Key, &Flow)) -> Result<(), TableError> {
        let mut walk = self.walk();
        while walk.part(&mut each)? {}
        Ok(())
    }

    /// The same in parts.
    pub fn walk(&self) -> Walk {
        Walk::new(self.clone())
    }
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("at", &self.at).field("bucket", &self.bucket).finish()
    }
}

impl Walk {
    pub(super) fn new(table: Table) -> Self {
        let (keys, values) = (vec![[0; KEY]; PART], vec![Value::default(); PART]);
        Self { table, at: Where::Decided, bucket: None, keys, values }
    }

    /// Shows some more flows, decided ones first; `false` when those were the last. Flows that come and
    /// go meanwhile may be among them or not, all others are shown once in a walk.
    ///
    /// # Errors
    /// When the kernel refuses; the next walk begins again then.
    pub fn part(&mut self, mut each: impl FnMut(&Key, &Flow)) -> Result<bool, TableError> {
        let read = self.read();
        let Ok((count, more)) = read else {
            (self.at, self.bucket) = (Where::Decided, None);
            return read.map(|(_, more)| more).map_err(TableError::Walk);
        };
        for (key, value) in self.keys.iter().zip(&self.values).take(count) {
            let flow = Flow::from(value);
            // What was decided a moment ago is among the fresh ones a little longer.
            if matches!(self.at, Where::Decided) || flow.verdict.is_none() {
                each(&Key(*key), &flow);
            }
        }
        if more {
            return Ok(true);
        }
        self.bucket = None;
        let (next, more) = match self.at {
            Where::Decided => (Where::Fresh, true),
            Where::Fresh => (Where::Decided, false),
        };
        self.at = next;
        Ok(more)
    }

    /// Reads a part: how many flows there are, and whether the table has more.
    fn read(&mut self) -> io::Result<(usize, bool)> {
        let maps = &self.table.inner.skeleton.maps;
        let map = match self.at {
            Where::Decided => maps.gate_decided.as_fd(),
            Where::Fresh => maps.gate_fresh.as_fd(),
        };
        loop {
            let from = self.bucket;
            let mut next = 0;
            let result = batch(map, from, &mut next, &mut self.keys, &mut self.values);
            match result {
                Ok((count, more)) => {
                    self.bucket = Some(next);
                    return Ok((count, more));
                }
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOSPC) && self.keys.len() < LARGEST =>
                {
                    let room = self.keys.len() * 2;
                    self.keys.resize(room, [0; KEY]);
                    self.values.resize(room, Value::default());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads flows from a bucket on; how many, and whether there are more from `next` on.
fn batch(
    map: BorrowedFd<'_>,
    from: Option<u32>,
    next: &mut u32,
    keys: &mut [[u8; KEY]],
    values: &mut [Value],
) -> io::Result<(usize, bool)> {
    let room = keys.len().min(values.len());
    let mut count = room as u32;
    let mut from = from;
    let from = from.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: both buffers have room for `count` keys and values of the map's sizes, and the positions in
    // the table are words of 32 bits; all live through the call.
    let result = unsafe {
        libbpf_sys::bpf_map_lookup_batch(
            map.as_raw_fd(),
            from.cast(),
            std::ptr::from_mut(next).cast(),
            keys.as_mut_ptr().cast(),
            values.as_mut_ptr().cast(),
            &raw mut count,
            std::ptr::null(),
        )
    };
    let count = (count as usize).min(room);
    match -result {
        0 => Ok((count, true)),
        libc::ENOENT => Ok((count, false)),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
