//! Measuring stations as an operator runs them, in namespaces: they agree, measure, refuse, go and come
//! back.

mod agreement;
mod distant;
mod http;
mod life;
mod live;
mod shown;
mod stage;
