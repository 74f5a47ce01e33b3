//! The memory of the tables, shared with the program: where in it what lies.
//!
//! ```text
//! lines   dense                blocks   rows of   rows
//! 8 MB    at most 32 MB    8 MB     2.25 MB   the rest
//! ```
//!
//! Each of these twice, side by side: one for each copy of the tables.
//!
//! A page of it is memory from when it is first written to: the lines are written whole, of the rest
//! what there is.

use super::limits::{MAX_BLOCKS, MAX_GROUPS, MAX_METRICS};
use super::paint::{BLOCK, LINES, NETWORKS};
use super::skeleton::types;
use libbpf_rs::{AsRawLibbpf as _, MapMut, libbpf_sys};
use std::ptr::NonNull;

/// Bytes: `ORACLE_ARENA_PAGES` of bpf/include/oracle.h.
const SIZE: usize = (1 << 17) * 4096;

/// Bytes of each part of a copy but the rows.
const PARTS: [usize; 4] = [
    LINES * size_of::<types::oracle_line>(),
    NETWORKS * size_of::<u16>(),
    MAX_BLOCKS * BLOCK * size_of::<u16>(),
    MAX_METRICS * MAX_GROUPS * size_of::<u32>(),
];
const FIXED: usize = 2 * (PARTS[0] + PARTS[1] + PARTS[2] + PARTS[3]);

/// Bytes of rows in a copy, at most.
pub(super) const ROWS: usize = ((SIZE - FIXED) / 2) & !63;

const _: () = assert!(FIXED < SIZE && FIXED.is_multiple_of(64));

/// The mapped arena of a loaded program; lives as long as it.
pub(super) struct Arena {
    base: NonNull<u8>,
}

// SAFETY: it is plain memory of the process, reached through `&mut` only.
unsafe impl Send for Arena {}

/// One of the two copies.
pub(super) struct Copy<'a> {
    /// The values of each /17.
    pub(super) lines: &'a mut [types::oracle_line],
    /// The values of /19s that have too many runs for their lines.
    pub(super) dense: &'a mut [u16],
    /// Blocks of 256 groups.
    pub(super) blocks: &'a mut [u16],
    /// For each metric and group of a source the address of a row.
    pub(super) rows_of: &'a mut [u32],
    /// Memory for rows.
    pub(super) rows: &'a mut [u16],
    /// Where it is, for the program.
    pub(super) tables: types::oracle_tables,
    /// The program's address of `rows`.
    pub(super) rows_at: u32,
}

impl Arena {
    /// Where libbpf has mapped it.
    pub(super) fn of(map: &MapMut<'_>) -> Self {
        let mut length = 0;
        // SAFETY: the map is open; libbpf maps an arena whole when it makes it, and leaves it
        // mapped until the map is closed. The length that it gives is that of initial data.
        let base = unsafe {
            libbpf_sys::bpf_map__initial_value(map.as_libbpf_object().as_ptr(), &raw mut length)
        };
        let base = NonNull::new(base.cast()).expect("a loaded arena is mapped");
        Self { base }
    }

    /// One copy; which of them the program is not reading is the caller's to know.
    pub(super) fn copy(&mut self, copy: usize) -> Copy<'_> {
        assert!(copy < 2);
        let mut end = 0;
        let [lines, dense, blocks, rows_of] = PARTS.map(|bytes| {
            let begin = end + copy * bytes;
            end += 2 * bytes;
            begin
        });
        let rows = FIXED + copy * ROWS;
        // The program knows a byte by the low half of its address.
        let low = self.base.as_ptr().expose_provenance() as u32;
        let at = |offset: usize| low.wrapping_add(offset as u32);
        let mut tables = types::oracle_tables {
            lines: at(lines),
            dense: at(dense),
            blocks: at(blocks),
            ..Default::default()
        };
        for (metric, row) in tables.rows.iter_mut().enumerate() {
            *row = at(rows_of + metric * MAX_GROUPS * size_of::<u32>());
        }
        Copy {
            lines: self.slice(lines, LINES),
            dense: self.slice(dense, NETWORKS),
            blocks: self.slice(blocks, MAX_BLOCKS * BLOCK),
            rows_of: self.slice(rows_of, MAX_METRICS * MAX_GROUPS),
            rows: self.slice(rows, ROWS / size_of::<u16>()),
            tables,
            rows_at: at(rows),
        }
    }

    fn slice<'a, T>(&self, offset: usize, length: usize) -> &'a mut [T] {
        assert!(offset.is_multiple_of(align_of::<T>()) && offset + length * size_of::<T>() <= SIZE);
        // SAFETY: the offset is within the mapping.
        let start = unsafe { self.base.add(offset) };
        // SAFETY: the range is within the mapping, which is zero where nothing was written, and
        // aligned; the parts that `copy` makes of it do not overlap and live no longer than its
        // `&mut self`; all bits are values of integers and of
        // structs of these without gaps.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<T>().as_ptr(), length) }
    }
}
