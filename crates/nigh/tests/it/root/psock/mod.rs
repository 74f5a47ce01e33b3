//! `nigh psock` as people use it, through a lab with two paths: files and pipes, paths that go and come
//! back, keys that do not fit, and the forwarder with programs that know TCP only.

mod proxy;
mod stage;
mod transfer;
