//! Measuring stations as an operator runs them, in namespaces: they agree, measure, refuse, go and come
//! back.

mod distant;
mod http;
mod life;
mod live;
mod sessions;
mod shown;
mod stage;
