//! `nigh oracle ...`: the command line.
