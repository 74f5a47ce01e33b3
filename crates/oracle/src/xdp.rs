//! The table that the program in the driver ranks with, made from the one that sockets use.
