//! Live sources of the topology: BMP, BGP-LS, files.
