//! Proxidor over UDP sockets: one pinned thread and one socket for each core.
