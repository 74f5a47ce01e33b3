//! The memory of the tables, shared with the program: where in it what lies.
//!
//! ```text
//! groups 0   groups 1   blocks 0   blocks 1   rows of 0   rows of 1   rows 0   rows 1
//! 32 MB      32 MB      8 MB       8 MB       2.25 MB     2.25 MB     the rest, in halves
//! ```
//!
//! A page of it is memory from when it is first written to: the groups are written whole, of the
//! rest what there is.

use super::publish::{BLOCK, MAX_BLOCKS, MAX_GROUPS, MAX_METRICS};
use super::skeleton::types;
use libbpf_rs::{AsRawLibbpf as _, MapMut, libbpf_sys};
use std::ptr::NonNull;

/// Bytes: `ORACLE_ARENA_PAGES` of bpf/include/oracle.h.
const SIZE: usize = (1 << 17) * 4096;

/// IPv4 networks of 256 addresses.
pub(super) const NETWORKS: usize = 1 << 24;

const GROUPS: usize = NETWORKS * size_of::<u16>();
const BLOCKS: usize = MAX_BLOCKS * BLOCK * size_of::<u16>();
const ROWS_OF: usize = MAX_METRICS * MAX_GROUPS * size_of::<u32>();
const FIXED: usize = 2 * (GROUPS + BLOCKS + ROWS_OF);

/// Bytes of rows in a copy, at the most.
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
    /// What each /24 is: a group, or a block.
    pub(super) groups: &'a mut [u16],
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
        let groups = copy * GROUPS;
        let blocks = 2 * GROUPS + copy * BLOCKS;
        let rows_of = 2 * (GROUPS + BLOCKS) + copy * ROWS_OF;
        let rows = FIXED + copy * ROWS;
        // The program knows a byte by the low half of its address.
        let low = self.base.as_ptr().expose_provenance() as u32;
        let at = |offset: usize| low.wrapping_add(offset as u32);
        let mut tables =
            types::oracle_tables { groups: at(groups), blocks: at(blocks), ..Default::default() };
        for (metric, place) in tables.rows.iter_mut().enumerate() {
            *place = at(rows_of + metric * MAX_GROUPS * size_of::<u32>());
        }
        Copy {
            groups: self.slice(groups, NETWORKS),
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
        // `&mut self`; all bits are values of u16 and u32.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<T>().as_ptr(), length) }
    }
}
